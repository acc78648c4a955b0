import { question } from "../diff/dialogs.js";
import { h, replace } from "../dom.js";

/** One question at a time, in its place; Esc and Cancel leave all as it is. */
export function asking(frame) {
  const element = h("div");

  /**
   * @param {string} words the question
   * @param {Array<[string, (typed: string) => void]>} actions label and what it does, after the question is gone; Enter
   *   in the field does the first
   * @param {string} [field] what a line to type begins with; its text is given to the actions
   */
  function ask(words, actions, field) {
    const asked = question(frame, element, { label: words });
    const input = field && h("input.mk-input.mk-typed.mk-wide", { value: field, "aria-label": words });
    const answer = (action) => {
      asked.close();
      action(input?.value.trim());
    };
    const buttons = actions.map(([label, action]) => frame.button(label, label, () => answer(action)));
    asked.fill(h("span", words), input, buttons);
    if (!input) return;
    input.addEventListener("keydown", (event) => event.key === "Enter" && answer(actions[0][1]));
    input.select();
  }

  return { element, ask, close: () => replace(element) };
}
