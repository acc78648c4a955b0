import { aria, h, replace, text } from "../dom.js";
import { changeWalk } from "./changes.js";
import { copyText } from "./copying.js";
import { optionBar } from "./option_bar.js";
import { localOptions } from "./options.js";
import { pairCache } from "./pairs.js";
import { rowsView } from "./rows_view.js";

const NARROW = 640;
const SLOW_MS = 150;
const ASKS = ["fold", "context", "ignore_ws"];

/**
 * What to show.
 *
 * @typedef {object} Pair
 * @property {string} old the id of a text; "" is nothing
 * @property {string} new
 * @property {string} [title] what the texts are of: a path
 * @property {[string, string]} [names] what stands above the two, if it is not what Python calls them
 * @property {string} [label] what is said before the numbers when it is shown
 */

/**
 * Two texts and what differs, with everything to look at it: inside of every widget that shows a change. It asks
 * `diff`, `lines` and `patch` (widgets/comparing.py).
 *
 * @param {object} frame
 * @param {Pair} first what to show first, and with it
 * @param {object} [first.view] the answer for it, if it is known
 * @param {object} [first.options] where the options live, by default here
 * @param {HTMLElement} [first.keysWithin] where its keys work, by default in the panel
 * @param {() => void} [first.onClose] with it there is a button to close
 * @param {(layout: string, pair: Pair) => void} [first.onPainted]
 * @returns {{element: HTMLElement, show: (pair: Pair) => Promise<boolean|undefined>, clear: () => void,
 *   put: (view: object) => void, prefetch: (pair: Pair) => void, dispose: () => void}} `show` tells whether it was
 *   painted: false if another one was asked for meanwhile, undefined if it failed
 */
export function diffPanel(frame, first) {
  const { options = localOptions(), onPainted } = first;
  const stats = h("span.mk-stats");
  const notes = h("div");
  const box = h("div.mk-diff-box", { role: "region", tabindex: "0" });
  const foot = h("div");
  const pairs = pairCache((question) => frame.call("diff", { ...question, start: 0 }));
  const walk = changeWalk(box, { total: () => shown.places, more: () => rows.showNext(), say: frame.say });
  const bar = optionBar(frame, options, { layout, stats, walk, copy, close: first.onClose });
  const element = h("div.mk-diff", bar.element, notes, h("div.mk-diff-frame", box, walk.ticks), foot);
  const mark = () => requestAnimationFrame(walk.mark);
  const rows = rowsView(frame, { box, foot, ask, onDrawn: mark });
  let wanted = first;
  let shown = null;
  let painted = "";
  let asked = 0;

  function ask(pair) {
    return {
      old: pair.old,
      new: pair.new,
      ignore_whitespace: options.get("ignore_ws"),
      context: options.get("fold") ? options.get("context") : null,
    };
  }

  function layout() {
    const mode = options.get("mode");
    if (mode !== "auto") return mode;
    const width = element.clientWidth; // 0 while it is out of the page, where it stays as it was
    return width ? (width < NARROW ? "unified" : "split") : painted || "split";
  }

  function show(pair) {
    wanted = { title: wanted.title, ...pair };
    return refresh();
  }

  function refresh() {
    return frame.attempt("Compare", load);
  }

  /** Only what was asked for last is painted, or fails. */
  async function load() {
    const mine = ++asked;
    const slow = setTimeout(() => aria(box, "busy", true), SLOW_MS);
    try {
      const view = await pairs.get(ask(wanted));
      if (mine === asked) paint(view);
      return mine === asked;
    } catch (error) {
      if (mine === asked) throw error;
      return false;
    } finally {
      clearTimeout(slow);
      if (mine === asked) box.removeAttribute("aria-busy");
    }
  }

  function paint(view) {
    const { title = "", names = view.names } = wanted;
    const isNew = view !== shown;
    shown = view;
    painted = layout();
    aria(box, "label", `Differences of ${title}`);
    const warnings = view.notes.map((note) => h("div.mk-dialog", text(note)));
    replace(notes, warnings, view.made.length ? h("div.mk-part.mk-faint", madeBy(frame, view.made)) : null);
    stats.textContent = view.summary;
    rows.draw(view, painted, names);
    if (isNew) announce(view);
    onPainted?.(painted, wanted);
  }

  function announce(view) {
    box.scrollTop = 0;
    walk.reset();
    frame.say([wanted.label, view.said].filter(Boolean).join(": "));
  }

  function copy() {
    return frame.attempt("Copy patch", async () => {
      const patch = await frame.call("patch", { old: shown.old, new: shown.new });
      frame.say(await copyText(patch.text, foot));
    });
  }

  function onOption(name) {
    element.classList.toggle("mk-words", options.get("word_level"));
    element.classList.toggle("mk-wrapped", options.get("wrap"));
    bar.update();
    if (ASKS.includes(name)) refresh();
    else if (name === "mode" && shown) paint(shown);
    else mark();
  }

  function put(view) {
    if (!view.cut) pairs.put(view, view);
  }

  function dispose() {
    for (const stop of stops.splice(0)) stop();
    element.remove();
  }

  const fit = () => (shown && layout() !== painted ? paint(shown) : walk.mark());
  const observer = new ResizeObserver(() => requestAnimationFrame(fit)); // what is drawn may change the size again
  const stops = [
    () => observer.disconnect(),
    options.on(onOption),
    frame.keys(bar.keys, first.keysWithin ?? element),
    frame.onClose(dispose),
  ];
  observer.observe(element);
  onOption();
  // What came with the state is painted at once; where it was cut to fit there, the whole follows.
  if (first.view) put(first.view);
  if (first.view) paint(first.view);
  if (!first.view || first.view.cut) refresh();

  // Nobody waits for what is asked beforehand.
  const prefetch = (pair) => pairs.get(ask(pair)).catch(() => undefined);
  return { element, show, clear: pairs.clear, put, prefetch, dispose };
}

/** Which call made it: in another view of this page that shows its run, it leads there. */
function madeBy(frame, [line, run, call]) {
  const view = document.querySelector(`[data-run="${CSS.escape(run)}"]`);
  if (!view || view === frame.root) return line;
  const go = () => (view.querySelector(`[data-call="${CSS.escape(call)}"] summary`) ?? view).focus();
  return frame.button(line, "Go to this call", go);
}
