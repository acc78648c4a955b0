import { aria, h, hasFocus } from "./dom.js";

/**
 * A way along numbers: one back, one forth, and a slider. A drag is one question, where it comes to rest.
 *
 * @param {object} frame
 * @param {string} label what the numbers are
 * @param {[string, string]} titles of the step back and the step forth
 * @param {{go: (value: number) => void, mark: (value: number) => string, ends: [string, string], restMs: number,
 *   stepMs?: number}} how `mark`: a number is about to be asked for, or is shown: say it in words; `ends`: what is said
 *   where there is no further one; `restMs`, `stepMs`: how long a drag and a step wait for another one
 */
export function stepper(frame, label, titles, { go, mark, ends, restMs, stepMs = 0 }) {
  const back = frame.button("◀", titles[0], () => step(-1));
  const forth = frame.button("▶", titles[1], () => step(1));
  const onInput = () => ask(+slider.value, restMs);
  const slider = h("input.mk-slider", { type: "range", "aria-label": label, oninput: onInput });
  let timer = 0;

  function ask(value, waitMs) {
    point(value);
    clearTimeout(timer);
    timer = 0;
    if (!waitMs) return go(value);
    timer = setTimeout(() => {
      timer = 0;
      go(value);
    }, waitMs);
    return undefined;
  }

  const step = (by) => to(+slider.value + by, by);

  function to(value, by) {
    const bounded = Math.max(+slider.min, Math.min(+slider.max, value));
    return bounded === +slider.value ? frame.say(ends[by > 0 ? 1 : 0]) : ask(bounded, stepMs);
  }

  function point(value) {
    slider.value = value;
    aria(slider, "valuetext", mark(value));
    able(back, value > +slider.min);
    able(forth, value < +slider.max);
  }

  /** A button that is switched off loses the focus, and with it the keys. */
  function able(button, on) {
    if (!on && hasFocus(button)) slider.focus();
    button.disabled = !on;
  }

  frame.onClose(() => clearTimeout(timer));
  return {
    elements: [h("span.mk-joined", back, forth), slider],
    step,
    to,
    /** Whether it is about to ask for another number. */
    isAsking: () => timer !== 0,
    update(value, min, max) {
      Object.assign(slider, { min, max });
      point(value);
    },
  };
}
