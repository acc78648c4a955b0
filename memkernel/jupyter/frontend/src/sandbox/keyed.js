/**
 * Draw what is new or has changed, and leave the element of what has not where it is: what is open in it, focused or
 * scrolled stays so. Where the focus was in what is gone, the nearest part around that can have it gets it.
 *
 * @param {HTMLElement} parent nothing else is in it
 * @param {Array<{key: string}>} items JSON
 * @param {(item: object) => HTMLElement} draw
 */
export function keyed(parent, items, draw) {
  const before = new Map([...parent.children].map((element) => [element.dataset.key, element]));
  const now = items.map((item) => drawn(item, before.get(item.key), draw));
  const hadFocus = parent.contains(parent.getRootNode().activeElement);
  for (const element of before.values()) if (!now.includes(element)) element.remove();
  now.forEach((element, place) => {
    if (parent.children[place] !== element) parent.insertBefore(element, parent.children[place] ?? null);
  });
  if (hadFocus && !parent.contains(parent.getRootNode().activeElement)) parent.closest("[tabindex]")?.focus();
}

const prints = new WeakMap();

function drawn(item, before, draw) {
  const print = JSON.stringify(item);
  if (before && prints.get(before) === print) return before;
  const element = draw(item);
  element.dataset.key = item.key;
  prints.set(element, print);
  return element;
}
