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
  const box = h("div", { class: danger ? "mk-dialog mk-ask" : "mk-dialog", role: "alertdialog", "aria-label": label, onkeydown: leave });
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
      box.querySelector("input, button").focus();
    },
  };
}

/**
 * Write an older text as a new version. Where the head has moved since it was shown, this is said and asked once more.
 *
 * @param {HTMLElement} place
 * @param {{version: object, path: string, head: string, done: (row: Array) => void}} what `head`: the newest id shown
 */
export function askRestore(frame, place, { version, path, head, done }) {
  const asked = question(frame, place, { label: `Restore @${version.ordinal}` });

  function ask(sentence, seen) {
    const restore = () =>
      frame.attempt("Restore", async () => {
        const answer = await frame.call("restore", { version: version.id, path, head: seen });
        if (answer.moved) return moved(answer.moved);
        asked.close();
        return done(answer.version);
      });
    asked.fill(h("span", {}, ...sentence), frame.button("Restore", `Write the text of @${version.ordinal} again`, restore));
  }

  function moved([id, ordinal, operation]) {
    ask([`Meanwhile there is @${ordinal} (${operation}). Write the text of @${version.ordinal} as a new version all the same?`], id);
  }

  ask([`Write the text of @${version.ordinal} as a new version of `, h("code", {}, ...text(path)), "? Nothing is lost: the history goes on."], head);
}

/**
 * Redact a version for ever: its ordinal has to be typed, and other versions with the same text are offered as well.
 *
 * @param {HTMLElement} place
 * @param {{version: object, done: (rows: Array) => void}} what
 */
export async function askRedaction(frame, place, { version, done }) {
  const facts = await frame.attempt("Redact", () => frame.call("redaction", { version: version.id }));
  if (!facts) return;
  const asked = question(frame, place, { label: `Redact @${facts.ordinal}`, danger: true });
  if (facts.reason) {
    asked.fill(h("span", {}, facts.reason));
    return;
  }
  const typed = h("input", { class: "mk-input mk-typed", size: "6", autocomplete: "off", "aria-label": "Its number, to confirm", oninput: look });
  const others = h("input", { type: "checkbox" });
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
      const { versions } = await frame.call("redact", { version: version.id, confirm: number(), others: others.checked });
      asked.close();
      done(versions);
    });
  }

  asked.fill(
    h("p", {}, `The text, path, size and hash of @${facts.ordinal} are erased for ever. Its number, actor and time stay. `,
      "Notebooks that were saved earlier keep what they show."),
    facts.others
      ? h("label", { class: "mk-others" }, others, ` also redact the other ${counted(facts.others, "version")} holding this text`)
      : null,
    h("label", {}, `Type ${facts.ordinal} to confirm `, typed),
    erase,
  );
}
