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
  const ticks = h("div.mk-ticks", { "aria-hidden": "true" });
  const places = () => [...box.querySelectorAll("[data-place]")];
  let current = -1;

  async function go(step) {
    const next = Math.max(0, current + step);
    while (next >= places().length && (await more()));
    focus(Math.min(next, places().length - 1));
  }

  function focus(index) {
    const all = places();
    const place = all[index];
    if (!place) return;
    all[current]?.classList.remove("mk-current");
    current = index;
    place.classList.add("mk-current");
    box.scrollTop = place.offsetTop - box.clientHeight / 3;
    place.focus({ preventScroll: true });
    box.scrollIntoView({ block: "nearest" });
    say(`Change ${number(index + 1)} of ${number(Math.max(total(), all.length))}`);
  }

  /** Many changes share a tick; a box that is seen whole needs none. */
  function mark() {
    const height = box.scrollHeight;
    const marks = new Map();
    places().forEach((place, index) => {
      const at = Math.round((place.offsetTop / height) * TICKS) / TICKS;
      if (!marks.has(at)) marks.set(at, h("i", { style: `top:${at * 100}%`, onclick: () => focus(index) }));
    });
    replace(ticks, height > box.clientHeight ? [...marks.values()] : []);
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
