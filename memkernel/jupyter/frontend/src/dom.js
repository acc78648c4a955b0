/**
 * An element. Children are nodes or plain text, never HTML: nothing that is stored can become markup.
 *
 * @param {string} tag
 * @param {Object<string, *>} props attributes, and listeners by `on…`; true is an empty attribute, false and null none
 * @param {...(Node|string|null)} children
 * @returns {HTMLElement}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) setProp(element, name, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

function setProp(element, name, value) {
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (value === true) element.setAttribute(name, "");
  else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
}

/** Put these children in place of those that are there. */
export function replace(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
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
