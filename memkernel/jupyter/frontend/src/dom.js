/**
 * An element. Children are nodes or plain text, never HTML: nothing that is stored can become markup.
 *
 * @param {string} tag with its classes: `td.mk-cell.mk-went`
 * @param {...*} rest first, or not at all, its attributes, and listeners by `on…` (true is an empty attribute, false
 *   and null none); then its children: nodes, texts, lists of them, null
 * @returns {HTMLElement}
 */
export function h(tag, ...rest) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  const props = rest[0]?.constructor === Object ? rest.shift() : {};
  for (const [key, value] of Object.entries(props)) setProp(element, key, value);
  element.append(...nodes(rest));
  return element;
}

const nodes = (children) => children.flat().filter((child) => child !== null && child !== undefined);

function setProp(element, name, value) {
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (value === true) element.setAttribute(name, "");
  else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
}

/** Say something of the element to assistive technology: its `label`, whether it is `pressed` … */
export function aria(element, name, value) {
  element.setAttribute(`aria-${name}`, value);
}

/** Put these children in place of those that are there. */
export function replace(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

/**
 * A stored text as Python marked it: plain, or pieces of which `[mark, title]` stands for what cannot be seen.
 *
 * @param {string|Array<string|[string, string]>} marked
 * @returns {Array<Node|string>}
 */
export function text(marked) {
  if (typeof marked === "string") return [marked];
  return marked.map((piece) => (typeof piece === "string" ? piece : mark(piece)));
}

function mark([shown, title]) {
  return h("b", { class: "mk-mark", title }, shown);
}

/** The same without elements, for attributes and announcements. */
export function plain(marked) {
  if (typeof marked === "string") return marked;
  return marked.map((piece) => (typeof piece === "string" ? piece : piece[0])).join("");
}

/** Whether the focus is on the element or within, also inside of a shadow tree. */
export function hasFocus(element) {
  return element.contains(element.getRootNode().activeElement);
}
