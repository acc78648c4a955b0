import { question } from "../diff/dialogs.js";
import { h, replace } from "../dom.js";

/**
 * One question at a time, inside the widget. Esc and Cancel leave all as it is.
 *
 * @param {object} frame
 * @returns {{element: HTMLElement, ask: (what: object) => void, close: () => void}}
 */
export function asking(frame) {
  const element = h("div", { class: "mk-asking" });

  /**
   * @param {object} what
   * @param {string} what.label what is asked, for screen readers
   * @param {string} what.words the question
   * @param {{label: string, value: string}} [what.field] a line to type, which the actions are given
   * @param {Array<[string, string, (typed: string) => void]>} what.actions label, title and what it does, after the
   *   question is gone; Enter in the field does the first
   * @param {boolean} [what.danger] the first action loses something: the focus is on Cancel
   */
  function ask({ label, words, field, actions, danger = false }) {
    const asked = question(frame, element, { label, danger });
    const input = field ? h("input", { class: "mk-input mk-wide", type: "text", "aria-label": field.label }) : null;
    if (input) input.value = field.value;
    const answer = ([, , action]) => {
      const typed = input?.value ?? "";
      asked.close();
      action(typed);
    };
    const buttons = actions.map((each, index) => {
      const look = danger && index === 0 ? { class: "mk-button mk-danger" } : {};
      return frame.button(each[0], each[1], () => answer(each), look);
    });
    asked.fill(h("p", {}, words), input, ...buttons);
    input?.addEventListener("keydown", (event) => event.key === "Enter" && answer(actions[0]));
    input?.select();
    if (danger) asked.box.querySelector("button:last-of-type").focus();
  }

  return { element, ask, close: () => replace(element) };
}
