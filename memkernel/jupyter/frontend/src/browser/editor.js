import { h } from "../dom.js";
import { editable } from "./lines.js";

const NEW_PATH = "Path of the new memory";
const LOST = "An editor here would lose carriage returns of this text. Change it from Python, with store.write().";

/**
 * A memory's text in a textarea. It is saved only over the content that it was made from; where somebody changed the
 * memory meanwhile, there are three ways on.
 *
 * @param {object} desk
 * @param {object} questions asking.js
 */
export function editor(desk, questions) {
  const { frame } = desk;
  const area = h("textarea.mk-area", { spellcheck: "false", "aria-label": "Text", onkeydown });
  const save = frame.button("Save", "Save (Ctrl+S)", () => onSave());
  const cancel = frame.button("Cancel", "Leave (Esc)", () => leave());
  const foot = h("div.mk-bar", h("span.mk-gap"), cancel, save);
  const element = h("div.mk-tree", { hidden: true }, area, foot);
  let draft = null; // {key, sha256, ends}; of a new memory the key is not known yet, and the sha256 is ""

  function onkeydown(event) {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    leave();
  }

  async function open(key) {
    const found = await desk.ask("Edit", "edit", { path: key });
    if (found) start(key, found.text, found.sha256);
  }

  function start(key, text, sha256, near) {
    const ends = editable(text);
    area.value = ends?.shown ?? "";
    if (area.value !== ends?.shown) return questions.ask(LOST, []);
    draft = { key, sha256, ends, near };
    element.hidden = false;
    desk.edited();
    area.focus();
    return area.setSelectionRange(0, 0);
  }

  function close() {
    draft = null;
    element.hidden = true;
    desk.edited();
  }

  /** Go on with something else; where something is changed, this is asked first. */
  function leave(after = desk.reread) {
    const changed = draft && area.value !== draft.ends.shown;
    const left = () => [draft && close(), after()];
    if (changed) questions.ask("Give up what you changed?", [["Give up", left]]);
    else left();
  }

  async function onSave(expect = draft.sha256, key = draft.key) {
    if (!key) return questions.ask(NEW_PATH, [["Save", (typed) => onSave("", (draft.near = typed))]], draft.near);
    const text = draft.ends.restored(area.value);
    const answer = await desk.ask("Save", "save", { path: key, text, expect });
    if (!answer) return;
    if (answer.conflict) return conflict(key, text, answer.conflict);
    close();
    frame.say(`${key} is saved`);
    desk.open(key, "key");
  }

  function conflict(key, text, theirs) {
    const { words, version, sha256 } = theirs;
    const take = ["Take theirs", () => [close(), desk.open(key, "key")]];
    const diff = ["Open diff", () => compare(key, text, theirs)];
    const drop = ["Give it up", () => [close(), desk.reread()]];
    questions.ask(words, [["Keep mine", () => onSave(sha256, key)], ...(version ? [take, diff] : [drop])]);
  }

  async function compare(key, text, theirs) {
    const mine = await desk.ask("Open diff", "draft", { text });
    if (!mine) return;
    desk.compare(theirs.version[0], mine.id);
    conflict(key, text, theirs);
  }

  return {
    ...{ element, open, leave },
    save: () => onSave(),
    /** @param {string} near what its path will begin with */
    create: (near) => start("", "", "", near),
    /** What is edited; "" where nothing is. */
    title: () => draft && (draft.key || "New memory"),
  };
}
