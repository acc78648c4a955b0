import { h, plain, replace, text } from "../dom.js";
import { counted } from "../format.js";
import { callView } from "./call.js";

/**
 * The view of an entry.
 *
 * @returns {{n: number, element: HTMLElement, update: (entry: object) => void, add: (change: object) => void,
 *   spoken: () => string, dispose: () => void}} `n` is the number of the last change that it shows
 */
export function entryView(frame, entry) {
  return entry.kind === "tool" ? callView(frame, entry) : saidView(frame, entry);
}

const FRAMES = {
  prompt: (words) => h("blockquote", { class: "mk-run-prompt" }, words),
  text: (words) => h("div", { class: "mk-run-text" }, words),
  thinking: (words) => h("details", { class: "mk-run-thinking" }, h("summary", {}, "Thinking"), words),
  notice: (words) => h("div", { class: "mk-run-notice" }, h("span", { "aria-hidden": "true" }, "! "), words),
};

/** What somebody said: the person, the model, or memkernel. */
function saidView(frame, first) {
  const words = h("div", { class: "mk-run-words" });
  const element = h("div", { class: "mk-run-entry" }, FRAMES[first.kind](words));
  const view = {
    n: first.n,
    element,
    update(entry) {
      view.n = entry.n;
      replace(words, text(entry.text));
      showRest(frame, element, entry, view.update);
    },
    add({ n, add }) {
      view.n = n;
      for (const piece of text(add)) append(words, piece);
    },
    spoken: () => (first.kind === "thinking" ? "" : words.textContent),
    dispose: () => element.remove(),
  };
  view.update(first);
  return view;
}

/** Words that stream in stay one text node. */
function append(words, piece) {
  const last = words.lastChild;
  if (typeof piece === "string" && last?.nodeType === Node.TEXT_NODE) last.appendData(piece);
  else words.append(piece);
}

/** Where an entry is cut, a button that brings the rest. */
export function showRest(frame, element, entry, update) {
  element.querySelector(":scope > .mk-run-rest")?.remove();
  if (!entry.more) return;
  const title = "Show all of it";
  const ask = async () => {
    const whole = await frame.attempt(title, () => frame.call("whole", { entry: entry.k }));
    if (whole) update(whole);
  };
  element.append(
    frame.button(`Show ${counted(entry.more, "more character")}`, title, ask, { class: "mk-button mk-run-rest" }),
  );
}

/** A short line for a screen reader. */
export function line(marked) {
  return plain(marked).replace(/\s+/g, " ");
}
