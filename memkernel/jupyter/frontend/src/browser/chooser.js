import { h, replace, text } from "../dom.js";
import { ago, counted, moment } from "../format.js";

/** The stores to choose from, where none is in use. */
export function chooser(frame) {
  const list = h("ul", { class: "mk-stores" });
  const count = h("span", { class: "mk-faint" });
  replace(frame.body, h("div", { class: "mk-bar" }, h("span", { class: "mk-title" }, "Memory stores"), count), list);
  frame.root.setAttribute("aria-label", "Memory stores");

  function paint() {
    const rows = frame.get("stores");
    count.textContent = rows.length ? counted(rows.length, "store") : "";
    replace(list, rows.length ? rows.map((row) => h("li", {}, drawn(frame, row))) : h("li", {}, none()));
  }

  paint();
  frame.ready("stores");
  return frame.on("stores", paint);
}

function drawn(frame, [id, name, description, memories, updatedAt, archivedAt]) {
  const choose = () => frame.attempt("Open the store", () => frame.call("choose", { store: id }));
  return h(
    "button",
    { type: "button", class: "mk-store", onclick: choose },
    h("span", { class: "mk-store-name" }, ...text(name)),
    archivedAt ? h("span", { class: "mk-tag" }, "archived") : null,
    h("span", { class: "mk-store-facts", title: ago(updatedAt) }, facts(memories, updatedAt)),
    description.length ? h("span", { class: "mk-store-about" }, ...text(description)) : null,
  );
}

function facts(memories, updatedAt) {
  return `${counted(memories, "memory", "memories")} · ${moment(updatedAt)}`;
}

function none() {
  return h("p", { class: "mk-faint" }, "There is no store yet. ", h("code", {}, "%memory create NAME"), " makes one.");
}
