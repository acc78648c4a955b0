import { aria, h, replace, text } from "../dom.js";
import { counted, moment } from "../format.js";

/** The stores to choose from, where none is in use. */
export function chooser(frame) {
  const list = h("div");
  aria(frame.root, "label", "Memory stores");
  replace(frame.body, h("div.mk-bar", h("span.mk-title", "Memory stores")), list);

  function paint() {
    const rows = frame.get("stores");
    const none = h("p.mk-empty.mk-faint", "There is no store: %memory create NAME");
    replace(list, rows.length ? rows.map(drawn) : none);
  }

  function drawn([id, name, about, memories, updatedAt, archivedAt]) {
    const facts = `${counted(memories, "memory", "memories")} · ${moment(updatedAt)}`;
    const onclick = () => frame.attempt("Open the store", () => frame.call("choose", { store: id }));
    return h(
      "button.mk-hit.mk-store",
      { onclick },
      h("b.mk-name", ...text(name)),
      h("span.mk-end", archivedAt && "archived · ", facts),
      h("span.mk-snippet", ...text(about)),
    );
  }

  paint();
  frame.ready("stores");
  return frame.on("stores", paint);
}
