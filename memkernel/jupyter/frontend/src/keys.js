import { h, replace } from "./dom.js";

const TYPING = "input:not([type=range]):not([type=checkbox]):not([type=radio]), textarea, select";

/**
 * Keys by `KeyboardEvent.key`, with `Ctrl+` or `Shift+` before it: what it does, and the doing.
 *
 * @typedef {Object<string, [string, (event: KeyboardEvent) => void]>} Keys
 */

/**
 * The keys of a view and of what stands inside of it, and the list of them all that `?` shows.
 *
 * @param {HTMLElement} root
 * @returns {(table: Keys, within?: HTMLElement) => () => void} takes keys that work while the focus is within the
 *   element, an inner one's before an outer one's; what it gives ends them
 */
export function keyboard(root) {
  const tables = new Map();
  const dialog = h("div.mk-keys", { role: "dialog", "aria-label": "Keys", tabindex: "-1", hidden: true });
  let before = null;
  root.append(dialog);
  // JupyterLab would prevent every line break that is typed within a cell, a textarea's, too; it listens on the target.
  root.addEventListener("beforeinput", (event) => event.stopPropagation(), true);

  function toggle(open) {
    if (open) {
      before = root.getRootNode().activeElement;
      list();
    }
    dialog.hidden = !open;
    const back = root.contains(before) ? before : root;
    (open ? dialog : back).focus();
  }

  function list() {
    const close = h("button.mk-button", { type: "button", onclick: () => toggle(false) }, "Close");
    const entries = [...tables.values()].flat().flatMap((table) => Object.entries(table));
    replace(dialog, h("dl", [...grouped(entries)].map(([title, keys]) => line(title, keys))), close);
  }

  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !dialog.hidden) return take(event, () => toggle(false));
    if (event.key !== "?" || isTyping(event)) return undefined;
    return take(event, () => toggle(dialog.hidden));
  });

  return function takeKeys(table, within = root) {
    const key = {};
    const onKey = (event) => {
      const action = actionFor(table, event);
      if (action) take(event, () => action(event));
    };
    tables.set(key, table);
    within.addEventListener("keydown", onKey);
    return () => {
      tables.delete(key);
      within.removeEventListener("keydown", onKey);
    };
  };
}

function actionFor(table, event) {
  if (event.metaKey || event.altKey || event.defaultPrevented) return undefined;
  const name = keyName(event);
  if (isTyping(event) && !name.startsWith("Ctrl+") && name !== "Escape") return undefined;
  return (table[name] ?? (event.shiftKey ? table[event.key] : undefined))?.[1];
}

function isTyping(event) {
  return event.target.matches(TYPING);
}

function take(event, action) {
  event.preventDefault();
  event.stopPropagation();
  action();
}

function keyName(event) {
  const shift = event.shiftKey && event.key.length > 1 ? "Shift+" : "";
  return `${event.ctrlKey ? "Ctrl+" : ""}${shift}${event.key}`;
}

/** Keys that do the same are one line. */
function grouped(entries) {
  const titles = new Map();
  for (const [key, [title]] of entries) titles.set(title, [...(titles.get(title) ?? []), key]);
  return titles;
}

function line(title, keys) {
  const shown = keys.flatMap((key) => [h("kbd", key.replace("Arrow", "").replace(" ", "Space")), " "]);
  return h("div", h("dt", shown), h("dd", title));
}
