import { h, replace } from "../dom.js";
import { number, versionLine } from "../format.js";
import { stepper } from "../stepper.js";

const DEBOUNCE_MS = 80;
const CHOICES = 200;

/**
 * The way along the versions of a memory: older, newer, a slider, and what to compare with.
 *
 * @param {{history: object, go: (ordinal: number) => void, pin: (base: string|number) => void}} how
 */
export function stepBar(frame, { history, go, pin }) {
  const ends = ["The oldest version", "The newest version"];
  const titles = ["Older version ([)", "Newer version (])"];
  const steps = stepper(frame, "Version", titles, { go, mark, ends, restMs: DEBOUNCE_MS });
  const facts = h("span.mk-facts");
  const base = h("select.mk-input", { title: "What the version is compared with (b)", onchange: choose });

  function choose() {
    pin(/^\d+$/.test(base.value) ? +base.value : base.value);
  }

  function mark(ordinal) {
    const version = history.at(ordinal);
    facts.title = version ? versionLine(version) : `@${ordinal}`;
    facts.textContent = `@${number(ordinal)} of ${number(history.last())}`;
    return facts.title;
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

  return {
    elements: [...steps.elements, facts, h("label", "compared with ", base)],
    /** Show which version is looked at, and what it is compared with. */
    update(shown) {
      steps.update(shown.index + 1, history.first(), history.last());
      offer(shown.base);
    },
    keys: {
      "[": ["Older version", () => steps.step(-1)],
      "]": ["Newer version", () => steps.step(1)],
      Home: ["Oldest version", () => steps.to(history.first(), -1)],
      End: ["Newest version", () => steps.to(history.last(), 1)],
    },
  };
}
