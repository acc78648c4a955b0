import { h } from "../dom.js";

const SETTLE_MS = 120;

/**
 * One of the two points of the store's history: step, slide, or type a change's number or a time.
 *
 * @param {object} frame
 * @param {string} label what it is called: From, To
 * @param {[string, string]} keys those of the step back and the step forth, for the titles
 * @param {(point: number|string) => void} go
 */
export function pointControl(frame, label, keys, go) {
  const earlier = frame.button("◀", `${label}: one change earlier (${keys[0]})`, () => step(-1));
  const later = frame.button("▶", `${label}: one change later (${keys[1]})`, () => step(1));
  const slider = h("input.mk-slider", { type: "range", "aria-label": `${label}: a change of the store`, oninput: slide });
  const typed = h("input.mk-input", {
    ...{ type: "text", size: 17, spellcheck: "false", onchange: submit },
    onkeydown: ({ key }) => key === "Enter" && submit(),
    ...{ "aria-label": `${label}: a change or a time`, title: "@41, @-1, head, yesterday, 2026-11-30T10:00 (UTC), @memver_…" },
  });
  const words = h("span.mk-faint");
  let timer = 0;
  let said = "";

  /** Enter says it, and so does leaving: once. */
  function submit() {
    if (typed.value === said) return;
    said = typed.value;
    go(said);
  }

  /** Many steps, or a drag, are one question. */
  function slide() {
    mark(`change ${slider.value}`);
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = 0;
      go(+slider.value);
    }, SETTLE_MS);
  }

  function step(by) {
    const bounded = Math.max(+slider.min, Math.min(+slider.max, +slider.value + by));
    if (bounded === +slider.value) return frame.say(`${label}: the ${by > 0 ? "newest" : "first"} change`);
    slider.value = bounded;
    return slide();
  }

  function mark(point) {
    words.textContent = point;
    typed.value = said = `@${slider.value}`;
    slider.setAttribute("aria-valuetext", point);
    earlier.disabled = slider.value === slider.min;
    later.disabled = slider.value === slider.max;
  }

  frame.onClose(() => clearTimeout(timer));
  return {
    element: h("div.mk-point", h("b", label), h("span.mk-joined", earlier, later), slider, typed, words),
    keys: {
      [keys[0]]: [`${label}: one change earlier`, () => step(-1)],
      [keys[1]]: [`${label}: one change later`, () => step(1)],
    },
    update([seq, point], first, head) {
      if (timer) return; // it is about to ask for another point
      Object.assign(slider, { min: first, max: head, value: seq });
      mark(point);
    },
  };
}
