import { h, replace, text } from "../dom.js";
import { counted } from "../format.js";

/**
 * A question inside of the view: hosts' frames forbid the browser's own. Escape and Cancel put the focus back.
 *
 * @param {HTMLElement} place an empty element, which is hidden again afterwards
 * @param {{label: string, danger?: boolean}} how
 * @returns {{fill: (...children: *) => void, close: () => void}}
 */
export function question(frame, place, { label, danger = false }) {
  const before = frame.root.getRootNode().activeElement;
  const kind = danger ? "mk-dialog mk-ask" : "mk-dialog";
  const box = h("div", { class: kind, role: "alertdialog", "aria-label": label, onkeydown: leave });
  replace(place, box);

  function close() {
    replace(place);
    (frame.root.contains(before) && !before.disabled ? before : frame.root).focus();
  }

  function leave(event) {
    event.stopPropagation();
    if (event.key === "Escape") close();
  }

  return {
    box,
    close,
    fill(...children) {
      replace(box, ...children, frame.button("Cancel", "Leave all as it is (Escape)", close));
      box.querySelector(".mk-typed, button").focus();
    },
  };
}

/**
 * Write an older text as a new version. Where the head has moved since it was shown, this is said and asked once more.
 *
 * @param {HTMLElement} place
 * @param {{version: object, path: *, target?: string, head: string, done: (row: Array) => void}} what `path` is marked;
 *   `target`: another path to write to; `head`: the id of the newest version that is shown
 */
export function askRestore(frame, place, { version, path, target = null, head, done }) {
  const { id, ordinal } = version;
  const asked = question(frame, place, { label: `Restore @${ordinal}` });

  function ask(sentence, seen) {
    const restore = () =>
      frame.attempt("Restore", async () => {
        const answer = await frame.call("restore", { version: id, path: target, head: seen });
        if (answer.moved) return moved(answer.moved);
        asked.close();
        return done(answer.version);
      });
    asked.fill(h("span", {}, ...sentence), frame.button("Restore", `Write the text of @${ordinal} again`, restore));
  }

  function moved([newest, number, operation]) {
    const sentence = `Meanwhile there is @${number} (${operation}). `;
    ask([sentence, `Write the text of @${ordinal} as a new version all the same?`], newest);
  }

  const where = h("code", {}, ...text(path));
  ask([`Write the text of @${ordinal} as a new version of `, where, "? Nothing is lost: the history goes on."], head);
}

/**
 * Redact a version for ever: its ordinal has to be typed, and other versions with the same text are offered as well.
 *
 * @param {HTMLElement} place
 * @param {{version: object, done: (rows: Array, kept: string) => void}} what `kept`: what still holds the text, or ""
 */
export async function askRedaction(frame, place, { version, done }) {
  const facts = await frame.attempt("Redact", () => frame.call("redaction", { version: version.id }));
  if (!facts) return;
  const asked = question(frame, place, { label: `Redact @${facts.ordinal}`, danger: true });
  if (facts.reason) {
    asked.fill(h("span", {}, facts.reason));
    return;
  }
  const typed = h("input", { class: "mk-input mk-typed", size: "6", autocomplete: "off", oninput: look });
  const others = h("input", { type: "checkbox" });
  const same = ` also redact the other ${counted(facts.others, "version")} holding this text`;
  const erase = frame.button("Redact for ever", `Erase the text of @${facts.ordinal}`, redact, {
    class: "mk-button mk-danger",
    disabled: true,
  });

  function look() {
    erase.disabled = number() !== String(facts.ordinal);
  }

  function number() {
    return typed.value.trim().replace(/^@/, "");
  }

  function redact() {
    return frame.attempt("Redact", async () => {
      const params = { version: version.id, confirm: number(), others: others.checked };
      const { versions, kept } = await frame.call("redact", params);
      asked.close();
      done(versions, kept);
    });
  }

  asked.fill(
    h("p", {}, erased(facts)),
    facts.others ? h("label", {}, others, same) : null,
    h("label", {}, `Type ${facts.ordinal} to confirm `, typed),
    erase,
  );
}

function erased({ ordinal, heads }) {
  const live = heads ? ` ${counted(heads, "live memory", "live memories")} with this text cannot be redacted.` : "";
  return (
    `The text, path, size and hash of @${ordinal} are erased for ever. Its number, actor and time stay. ` +
    `Notebooks that were saved earlier keep what they show.${live}`
  );
}

/** Say something where the questions are asked, until it is closed. */
export function tell(frame, place, sentence) {
  const close = frame.button("×", "Close this message", () => replace(place), { class: "mk-button mk-quiet" });
  replace(place, h("div", { class: "mk-dialog", role: "status" }, sentence, close));
}
