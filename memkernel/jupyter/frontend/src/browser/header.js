import { aria, h, text } from "../dom.js";
import { counted, number } from "../format.js";

/** The store's name, the search box, how many memories there are, and what can be done with the whole store. */
export function header(desk) {
  const { frame } = desk;
  const count = h("span.mk-faint", { role: "status" });
  const box = h("input.mk-input.mk-query", {
    type: "search",
    value: frame.get("query"),
    "aria-label": "Filter paths, or search",
    placeholder: "Filter paths, or /text to search contents",
    oninput: () => desk.filter(),
    onkeydown,
  });
  const deleted = frame.button("Deleted", "Show deleted memories, too", () => {
    frame.set("show_deleted", !frame.get("show_deleted"));
    paintDeleted();
  });
  const create = frame.button("New…", "Write a new memory", () => desk.create());
  const element = h(
    "div.mk-bar",
    h("span.mk-title", ...text(frame.get("store_name"))),
    frame.get("reason") ? h("span.mk-tag", frame.get("reason")) : null,
    box,
    count,
    h("span.mk-gap"),
    frame.get("readonly") ? null : create,
    deleted,
    frame.button("↻", "Read the store again", () => desk.ask("Refresh", "refresh")),
    frame.button("Stores", "Back to the stores", () => desk.ask("Stores", "choose", { store: "" })),
  );

  function onkeydown(event) {
    const contents = event.ctrlKey || box.value[0] === "/";
    const clear = () => (box.value ? desk.filter((box.value = "")) : desk.focusTree());
    const enter = contents ? desk.search : desk.focusTree;
    const action = { Enter: enter, ArrowDown: desk.focusTree, Escape: clear }[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  function paintDeleted() {
    aria(deleted, "pressed", frame.get("show_deleted"));
  }

  paintDeleted();
  return {
    element,
    box,
    query: () => box.value.trim(),
    /** @param {number} shown how many a filter leaves */
    paint(shown) {
      const all = counted(frame.get("total"), "memory", "memories");
      count.textContent = box.value && box.value[0] !== "/" ? `${number(shown)} of ${all}` : all;
    },
  };
}
