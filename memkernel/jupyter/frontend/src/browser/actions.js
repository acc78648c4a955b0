import { h } from "../dom.js";
import { actor, moment } from "../format.js";
import * as records from "../records.js";

/**
 * What can be done with the memory on screen beside editing: to rename and to delete it, each asked for first.
 *
 * @returns {HTMLElement} its buttons
 */
export function memoryActions(desk, questions) {
  const { frame } = desk;

  function rename() {
    const key = desk.selected();
    questions.ask({
      label: "Rename the memory",
      words: "Rename to",
      field: { label: "New path", value: key },
      actions: [["Rename", "Rename it; its history stays with it (Enter)", (typed) => move(key, typed.trim())]],
    });
  }

  async function move(key, to) {
    if (!to || to === key) return;
    const done = await frame.attempt("Rename", () => frame.call("rename", { path: key, new_path: to }));
    if (!done) return;
    desk.moved(key, to);
    frame.say(`${key} is ${to} now`);
  }

  function remove(expect = desk.shownSha(), words = `Delete ${desk.selected()}? Its versions stay, and can be restored.`) {
    const key = desk.selected();
    questions.ask({
      label: "Delete the memory",
      words,
      danger: true,
      actions: [["Delete", "Delete the memory", () => drop(key, expect)]],
    });
  }

  async function drop(key, expect) {
    const answer = await frame.attempt("Delete", () => frame.call("delete", { path: key, expect }));
    if (!answer) return;
    if (!answer.conflict) return deleted(key);
    const { version, sha256 } = answer.conflict;
    if (!version) return deleted(key);
    const theirs = records.version(version);
    const who = `${actor(theirs) || "somebody"} at ${moment(theirs.at)} UTC`;
    remove(sha256, `${key} was changed meanwhile, by ${who} (@${theirs.ordinal}). Delete it all the same?`);
  }

  function deleted(key) {
    desk.drafts.delete(key);
    frame.say(`${key} is deleted`);
    desk.gone(key);
  }

  return h(
    "span",
    { class: "mk-actions" },
    frame.button("Rename…", "Rename the memory", rename),
    frame.button("Delete…", "Delete the memory", () => remove()),
  );
}
