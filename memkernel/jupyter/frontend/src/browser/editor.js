import { h } from "../dom.js";
import { actor, moment, number } from "../format.js";
import * as records from "../records.js";
import { bytesOf, editable } from "./lines.js";

const MOST_BYTES = 102_400;
const MIXED =
  "This text has carriage returns that an editor in the page would lose. Change it from Python, with store.write() " +
  "or store.replace().";

/**
 * A memory's text in a textarea. It is saved only over the content that it was made from; whoever changed the memory
 * meanwhile is shown, with three ways on. A text that is not saved stays with its memory until it is, or is given up.
 *
 * @param {object} desk
 * @param {object} questions asking.js
 * @param {{onLeave: () => void, onSaved: (key: string) => void}} on
 */
export function editor(desk, questions, { onLeave, onSaved }) {
  const { frame } = desk;
  const path = h("input", { class: "mk-input mk-wide", type: "text", "aria-label": "Path of the new memory" });
  const area = h("textarea", { class: "mk-area", spellcheck: "false", "aria-label": "Text of the memory" });
  const bytes = h("span", { class: "mk-faint mk-bytes" });
  const save = frame.button("Save", "Save (Ctrl+S)", () => onSave());
  const cancel = frame.button("Cancel", "Leave without saving (Esc)", () => leave());
  const newPath = h("label", { class: "mk-new-path" }, "Path", path);
  const foot = h("div", { class: "mk-foot" }, bytes, h("span", { class: "mk-gap" }), cancel, save);
  const element = h("div", { class: "mk-editor", hidden: true }, newPath, area, foot);
  let draft = null;

  function onInput() {
    const count = bytesOf(draft.ends.restored(area.value));
    bytes.textContent = `${number(count)} of ${number(MOST_BYTES)} bytes`;
    bytes.classList.toggle("mk-bad", count > MOST_BYTES);
    save.disabled = count > MOST_BYTES;
    draft.edited = area.value;
    keep();
  }

  function changed() {
    return draft !== null && (draft.edited !== draft.ends.shown || (draft.fresh && path.value !== draft.suggested));
  }

  function keep() {
    if (draft.fresh) return;
    const had = desk.drafts.has(draft.key);
    if (changed()) desk.drafts.set(draft.key, draft);
    else desk.drafts.delete(draft.key);
    if (had !== desk.drafts.has(draft.key)) desk.repaint();
  }

  /** @returns {Promise<boolean>} whether it is open now */
  async function open(key) {
    const kept = desk.drafts.get(key);
    if (kept) return start(kept);
    const found = await frame.attempt("Edit", () => frame.call("edit", { path: key }));
    if (!found) return false;
    const ends = editable(found.text);
    if (ends) return start({ key, ends, edited: ends.shown, sha256: found.sha256, fresh: false });
    questions.ask({ label: "This text cannot be edited here", words: MIXED, actions: [] });
    return false;
  }

  function create(suggested) {
    return start({ key: "", ends: editable(""), edited: "", sha256: "", fresh: true, suggested });
  }

  function start(next) {
    draft = next;
    element.hidden = false;
    newPath.hidden = !draft.fresh;
    path.value = draft.suggested ?? "";
    area.value = draft.edited;
    onInput();
    (draft.fresh ? path : area).focus();
    if (draft.fresh) path.setSelectionRange(path.value.length, path.value.length);
    else area.setSelectionRange(0, 0);
    area.scrollTop = 0;
    return true;
  }

  /** Show something else; what is not saved is kept. */
  function suspend() {
    element.hidden = true;
    draft = null;
  }

  function drop() {
    desk.drafts.delete(draft.key);
    suspend();
    desk.repaint();
    onLeave();
  }

  function leave() {
    if (!changed()) return drop();
    const where = draft.fresh ? "the new memory" : draft.key;
    return questions.ask({
      label: "Give up the changes",
      words: `Give up what you changed in ${where}?`,
      danger: true,
      actions: [["Give up", "Lose the changes", drop]],
    });
  }

  async function onSave(expect = draft.sha256) {
    const key = draft.fresh ? path.value.trim() : draft.key;
    const saving = draft;
    const text = draft.ends.restored(area.value);
    const answer = await frame.attempt("Save", () => frame.call("save", { path: key, text, expect }));
    if (!answer || draft !== saving) return;
    if (answer.conflict) return conflict(key, text, theirsOf(answer.conflict));
    desk.drafts.delete(saving.key);
    suspend();
    frame.say(`${key} is saved as @${records.version(answer.version).ordinal}`);
    onSaved(key);
  }

  function conflict(key, text, theirs) {
    const keep = theirs.version ? "Save mine as the newest version; theirs stays in the history" : "Write it again";
    const ways = theirs.version
      ? [
          ["Take theirs", "Give up mine and show theirs", () => take(key)],
          ["Open diff", "Compare theirs with mine", () => compare(key, text, theirs)],
        ]
      : [["Give it up", "Give up mine", drop]];
    questions.ask({
      label: "Somebody else changed it",
      words: happened(key, theirs.version, draft.fresh),
      actions: [["Keep mine", keep, () => onSave(theirs.sha256)], ...ways],
    });
  }

  function take(key) {
    drop();
    onSaved(key);
  }

  async function compare(key, text, theirs) {
    const mine = await frame.attempt("Open diff", () => frame.call("draft", { text }));
    if (!mine) return;
    const { id, ordinal } = theirs.version;
    desk.compare({ old: id, new: mine.id, names: [`@${ordinal}, theirs`, "mine, not saved"], title: key });
    if (draft) conflict(key, text, theirs);
  }

  area.addEventListener("input", onInput);
  area.addEventListener("keydown", (event) => {
    // The widget's other keys are letters here.
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    leave();
  });
  element.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation();
    if (!save.disabled) onSave();
  });
  return { element, open, create, suspend, leave, save: () => onSave(), isOpen: () => draft !== null };
}

function theirsOf({ version, sha256 }) {
  return { version: version && records.version(version), sha256 };
}

function happened(key, theirs, fresh) {
  if (!theirs) return `${key} was deleted while you edited it.`;
  const who = `${actor(theirs) || "somebody"} at ${moment(theirs.at)} UTC (@${theirs.ordinal})`;
  return fresh ? `${key} is there already: written by ${who}.` : `${key} was changed while you edited it, by ${who}.`;
}
