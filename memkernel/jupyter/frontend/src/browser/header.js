import { h, replace, text } from "../dom.js";
import { counted, number } from "../format.js";

/** The store's name, the search box, how many memories there are, and what can be done with the whole store. */
export function header(desk) {
  const { frame } = desk;
  const name = h("span", { class: "mk-title" });
  const count = h("span", { class: "mk-faint mk-count", role: "status" });
  const reason = h("span", { class: "mk-tag" });
  const box = h("input", {
    class: "mk-input mk-query",
    type: "search",
    placeholder: "Filter paths, or /text to search contents",
    title: "Filter the paths as you type (/). Enter after a slash, or Ctrl+Enter, searches the contents",
    "aria-label": "Filter paths, or search contents",
  });
  const stores = frame.button("Stores", "Back to the list of stores", () => desk.leaveStore());
  const create = frame.button("New…", "Write a new memory", () => desk.create());
  const refresh = frame.button("↻", "Read the store again", () => desk.refresh());
  const element = h("div", { class: "mk-bar mk-head" }, name, reason, box, count, h("span", { class: "mk-gap" }), create, refresh, stores);

  function onInput() {
    desk.filter(box.value);
  }

  function onKeydown(event) {
    const contents = event.ctrlKey || event.metaKey || box.value.startsWith("/");
    const action = {
      Enter: () => (contents ? desk.search() : desk.focusTree()),
      ArrowDown: () => desk.focusTree(),
      Escape: () => clear(),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  function clear() {
    if (box.value === "") return desk.focusTree();
    box.value = "";
    return onInput();
  }

  box.addEventListener("input", onInput);
  box.addEventListener("keydown", onKeydown);
  box.value = frame.get("query");
  return {
    element,
    query: () => box.value.trim(),
    focus: () => box.focus(),
    clear,
    /** @param {number|null} shown how many a filter leaves; null without one */
    paint(shown) {
      const total = desk.memories.total();
      replace(name, ...text(frame.get("store_name")));
      const all = counted(total, "memory", "memories");
      count.textContent = shown === null ? all : `${number(shown)} of ${all}`;
      create.hidden = desk.readonly();
      reason.hidden = !frame.get("reason");
      reason.textContent = frame.get("reason");
    },
  };
}
