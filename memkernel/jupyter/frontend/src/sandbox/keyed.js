/**
 * Draw what is new or has changed, and leave the element of what has not where it is: what is open in it, focused or
 * scrolled stays so.
 *
 * @param {HTMLElement} parent nothing else is in it
 * @param {Array<{key: string}>} items JSON
 * @param {(item: object) => HTMLElement} draw
 */
export function keyed(parent, items, draw) {
  const before = new Map([...parent.children].map((element) => [element.dataset.key, element]));
  const now = items.map((item) => drawn(item, before.get(item.key), draw));
  for (const element of before.values()) if (!now.includes(element)) element.remove();
  now.forEach((element, place) => {
    if (parent.children[place] !== element) parent.insertBefore(element, parent.children[place] ?? null);
  });
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
