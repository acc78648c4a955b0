import { h, replace } from "../dom.js";
import { number } from "../format.js";

const TICKS = 300;

/**
 * Going from change to change in a scrolled box, and the ticks beside it that show where they are.
 *
 * @param {HTMLElement} box
 * @param {{total: () => number, more: () => Promise<boolean>, say: (words: string) => void}} how `more` shows further
 *   rows, if there are any
 */
export function changeWalk(box, { total, more, say }) {
  const ticks = h("div", { class: "mk-ticks", "aria-hidden": "true" });
  let current = -1;

  const places = () => box.querySelectorAll("[data-place]");

  async function go(step) {
    const next = Math.max(0, current + step);
    while (next >= places().length && (await more()));
    const all = places();
    if (all.length) focus(all, Math.min(next, all.length - 1));
  }

  function focus(all, index) {
    current = index;
    const place = all[index];
    for (const each of box.querySelectorAll(".mk-current")) each.classList.remove("mk-current");
    place.classList.add("mk-current");
    box.scrollTop = place.offsetTop - box.clientHeight / 3;
    place.focus({ preventScroll: true });
    box.scrollIntoView({ block: "nearest" });
    say(`Change ${number(index + 1)} of ${number(Math.max(total(), all.length))}`);
  }

  /** Many changes share a tick; a box that is seen whole needs none. */
  function mark() {
    const height = box.scrollHeight;
    const shown = height > box.clientHeight ? [...places()] : [];
    const seen = new Set();
    const marks = shown.flatMap((place, index) => {
      const at = Math.round((place.offsetTop / height) * TICKS);
      if (seen.has(at)) return [];
      seen.add(at);
      return [h("i", { style: `top:${((at / TICKS) * 100).toFixed(2)}%`, onclick: () => focus(shown, index) })];
    });
    replace(ticks, marks);
  }

  return {
    ticks,
    go,
    mark,
    reset() {
      current = -1;
    },
  };
}
