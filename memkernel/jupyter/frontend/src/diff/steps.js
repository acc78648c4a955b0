import { h, hasFocus, replace } from "../dom.js";
import { number, versionLine } from "../format.js";

const DEBOUNCE_MS = 80;
const CHOICES = 200;

/**
 * The way along the versions of a memory: older, newer, a slider, and what to compare with.
 *
 * @param {{history: object, go: (ordinal: number) => void, pin: (base: string|number) => void}} how
 */
export function stepBar(frame, { history, go, pin }) {
  const older = frame.button("◀", "Older version ([)", () => step(-1));
  const newer = frame.button("▶", "Newer version (])", () => step(1));
  const slider = h("input.mk-slider", { type: "range", "aria-label": "Version", oninput: slide });
  const facts = h("span.mk-facts");
  const base = h("select.mk-input", { title: "What the version is compared with (b)", onchange: choose });
  let timer;

  function slide() {
    point(+slider.value);
    clearTimeout(timer);
    timer = setTimeout(() => go(+slider.value), DEBOUNCE_MS);
  }

  function step(by) {
    return to(+slider.value + by, by);
  }

  /** At once: only a slider that is being dragged waits. */
  function to(ordinal, by) {
    const bounded = Math.max(history.first(), Math.min(history.last(), ordinal));
    clearTimeout(timer);
    if (bounded === +slider.value) return frame.say(`The ${by > 0 ? "newest" : "oldest"} version`);
    point(bounded);
    return go(bounded);
  }

  function choose() {
    pin(/^\d+$/.test(base.value) ? +base.value : base.value);
  }

  function point(ordinal) {
    const version = history.at(ordinal);
    const line = version ? versionLine(version) : `@${ordinal}`;
    slider.min = history.first();
    slider.max = history.last();
    slider.value = ordinal;
    slider.setAttribute("aria-valuetext", line);
    facts.textContent = `@${number(ordinal)} of ${number(history.last())}`;
    facts.title = line;
    able(older, ordinal > history.first());
    able(newer, ordinal < history.last());
  }

  /** A button that is switched off loses the focus, and with it the keys. */
  function able(button, on) {
    if (!on && hasFocus(button)) slider.focus();
    button.disabled = !on;
  }

  function offer(pinned) {
    const near = history.all().slice(-CHOICES).reverse();
    const choices = new Map([
      ["prev", "the version before"],
      ["", "nothing"],
      ...near.map((version) => [String(version.ordinal - 1), versionLine(version)]),
    ]);
    const chosen = String(pinned);
    if (!choices.has(chosen)) choices.set(chosen, Number.isInteger(pinned) ? `@${pinned + 1}` : "another memory");
    replace(base, [...choices].map(([value, label]) => h("option", { value }, label)));
    base.value = chosen;
  }

  frame.onClose(() => clearTimeout(timer));
  return {
    elements: [h("span.mk-joined", older, newer), slider, facts, h("label", "compared with ", base)],
    /** Show which version is looked at, and what it is compared with. */
    update(shown) {
      point(shown.index + 1);
      offer(shown.base);
    },
    keys: {
      "[": ["Older version", () => step(-1)],
      "]": ["Newer version", () => step(1)],
      Home: ["Oldest version", () => to(history.first(), -1)],
      End: ["Newest version", () => to(history.last(), 1)],
    },
  };
}
