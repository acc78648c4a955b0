import { hasFocus } from "../dom.js";

const prints = new WeakMap();

/**
 * Draw what is new or has changed, and leave the element of what has not where it is: what is open in it, focused or
 * scrolled stays so. Where the focus was in what is gone, the nearest part around that can have it gets it.
 *
 * @param {HTMLElement} parent nothing else is in it
 * @param {Array} items JSON, no two alike
 * @param {(item: Array) => HTMLElement} draw
 */
export function keyed(parent, items, draw) {
  const before = new Map([...parent.children].map((element) => [prints.get(element), element]));
  const hadFocus = hasFocus(parent);
  items.forEach((item, place) => {
    const print = JSON.stringify(item);
    const element = before.get(print) ?? draw(item);
    before.delete(print);
    prints.set(element, print);
    if (parent.children[place] !== element) parent.insertBefore(element, parent.children[place] ?? null);
  });
  for (const element of before.values()) element.remove();
  if (hadFocus && !hasFocus(parent)) parent.closest("[tabindex]").focus();
}
