import { h, replace } from "../dom.js";
import { counted } from "../format.js";
import { named } from "./memories.js";

/** The switch below the tree: the deleted memories in place of those that live. The trait is `show_deleted`. */
export function deletedSwitch(desk, tree) {
  const { frame } = desk;
  const words = h("span", {});
  const button = frame.button("Deleted", "Show the memories that were deleted; each can be restored", () => {
    frame.set("show_deleted", !frame.get("show_deleted"));
  });

  async function paint() {
    const on = Boolean(frame.get("show_deleted"));
    button.setAttribute("aria-pressed", String(on));
    if (!on) {
      replace(words);
      return tree.showDeleted(null);
    }
    const found = await frame.attempt("Show deleted memories", () => frame.call("deleted"));
    if (!found || !frame.get("show_deleted")) return undefined;
    const memories = found.rows.map((row) => ({ ...named(row), id: row[3], deleted: true }));
    replace(words, `${found.more ? "the newest " : ""}${counted(memories.length, "deleted memory", "deleted memories")}`);
    return tree.showDeleted(memories);
  }

  for (const trait of ["show_deleted", "memories"]) frame.on(trait, paint);
  paint();
  return h("div", { class: "mk-foot" }, button, words);
}
