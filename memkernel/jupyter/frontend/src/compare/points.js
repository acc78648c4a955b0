import { h } from "../dom.js";
import { stepper } from "../stepper.js";

const REST_MS = 120;

/**
 * One of the two points of the store's history: step, slide, or type a change's number or a time.
 *
 * @param {object} frame
 * @param {string} label what it is called: From, To
 * @param {[string, string]} keys those of the step back and the step forth, for the titles
 * @param {(point: number|string) => void} go
 */
export function pointControl(frame, label, keys, go) {
  const names = ["earlier", "later"].map((way) => `${label}: one change ${way}`);
  const titles = names.map((name, index) => `${name} (${keys[index]})`);
  const ends = ["first", "newest"].map((end) => `${label}: the ${end} change`);
  const how = { go, mark: (value) => mark(value, `change ${value}`), ends, restMs: REST_MS, stepMs: REST_MS };
  const steps = stepper(frame, `${label}: a change of the store`, titles, how);
  const typed = h("input.mk-input", {
    ...{ type: "text", size: 17, spellcheck: "false", onchange: submit },
    onkeydown: ({ key }) => key === "Enter" && submit(),
    "aria-label": `${label}: a change or a time`,
    title: "@41, @-1, head, yesterday, 2026-11-30T10:00 (UTC), @memver_…",
  });
  const words = h("span.mk-faint");
  let known = [];
  let said = "";

  /** Enter says it, and so does leaving: once. */
  function submit() {
    if (typed.value === said) return;
    said = typed.value;
    go(said);
  }

  function mark(value, sentence) {
    typed.value = said = `@${value}`;
    words.textContent = value === known[0] ? known[1] : sentence;
    return words.textContent;
  }

  return {
    element: h("div.mk-point", h("b", label), steps.elements, typed, words),
    keys: Object.fromEntries(names.map((name, index) => [keys[index], [name, () => steps.step(index ? 1 : -1)]])),
    update(point, first, head) {
      if (steps.isAsking()) return;
      known = point;
      steps.update(point[0], first, head);
    },
  };
}
