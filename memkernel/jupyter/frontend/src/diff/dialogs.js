import { h, replace, text } from "../dom.js";

/**
 * A question inside of the view: hosts' frames forbid the browser's own. Escape and Cancel put the focus back.
 *
 * @param {HTMLElement} place an empty element, which is empty again afterwards
 * @param {{label: string}} how
 * @returns {{fill: (...children: *) => void, close: () => void}}
 */
export function question(frame, place, { label }) {
  const before = frame.root.getRootNode().activeElement;
  const box = h("div.mk-dialog", { role: "alertdialog", "aria-label": label, onkeydown: leave });
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
    close,
    fill(...children) {
      replace(box, ...children, frame.button("Cancel", "Leave all as it is (Escape)", close));
      box.querySelector(".mk-typed, button").focus();
    },
  };
}

/** The button that begins `askRestore`. */
export function restoreButton(frame, action) {
  return frame.button("Restore…", "Write this text as a new version", action);
}

/** The button that begins `askRedaction`. */
export function redactButton(frame, action) {
  return frame.button("Redact…", "Erase this text for ever", action, { class: "mk-button mk-danger" });
}

/**
 * Write an older text as a new version. Where the head has moved since it was shown, this is said and asked once more.
 *
 * @param {HTMLElement} place
 * @param {{version: object, path: *, target?: string, head: string, done: (row: Array) => void}} what `path` is marked;
 *   `target`: another path to write to; `head`: the id of the newest version that is shown
 */
export function askRestore(frame, place, { version, path, target = null, head, done }) {
  const asked = question(frame, place, { label: `Restore @${version.ordinal}` });

  function ask(sentence, seen) {
    const restore = () =>
      frame.attempt("Restore", async () => {
        const answer = await frame.call("restore", { version: version.id, path: target, head: seen });
        if (answer.moved) return ask(answer.sentence, answer.moved[0]);
        asked.close();
        return done(answer.version);
      });
    asked.fill(h("span", sentence), frame.button("Restore", "Write it as a new version", restore));
  }

  ask([`Write the text of @${version.ordinal} as a new version of `, h("code", text(path)), "?"], head);
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
  const asked = question(frame, place, { label: `Redact @${facts.ordinal}` });
  const typed = h("input.mk-input.mk-typed", { size: "6", autocomplete: "off", oninput: look });
  const others = h("input", { type: "checkbox" });
  const props = { class: "mk-button mk-danger", disabled: true };
  const erase = frame.button("Redact for ever", "Erase the text", redact, props);
  const number = () => typed.value.trim().replace("@", "");

  function look() {
    erase.disabled = number() !== String(facts.ordinal);
  }

  function redact() {
    return frame.attempt("Redact", async () => {
      const params = { version: version.id, confirm: number(), others: others.checked };
      const { versions, kept } = await frame.call("redact", params);
      asked.close();
      done(versions, kept);
    });
  }

  if (facts.reason) return void asked.fill(facts.reason);
  const same = facts.same ? h("label", others, ` ${facts.same}`) : null;
  asked.fill(h("div", facts.sentence), same, h("label", `Type ${facts.ordinal} to confirm `, typed), erase);
}
