import { h, replace, text } from "../dom.js";
import { counted, number } from "../format.js";
import { changeWalk } from "./changes.js";
import { copyText } from "./copying.js";
import { optionBar } from "./option_bar.js";
import { localOptions } from "./options.js";
import { pairCache } from "./pairs.js";
import { rowsView } from "./rows_view.js";

const NARROW = 640;
const SLOW_MS = 150;
const ASKS = new Set(["fold", "context", "ignore_ws"]);

/**
 * What to show.
 *
 * @typedef {object} Pair
 * @property {string} old the id of a text; "" is nothing
 * @property {string} new
 * @property {string} [title] what the texts are of: a path
 * @property {[string, string]} [names] what stands above the two; else made from
 * @property {object[]} [versions] records of versions
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
 * @param {(facts: {layout: string}) => void} [first.onPainted]
 * @returns {{element: HTMLElement, show: (pair: Pair) => Promise<void>, refresh: () => Promise<void>,
 *   clear: () => void, put: (view: object) => void, prefetch: (pair: Pair) => void, dispose: () => void}}
 */
export function diffPanel(frame, first) {
  const options = first.options ?? localOptions();
  const parts = elements();
  const pairs = pairCache((asked) => frame.call("diff", { ...asked, start: 0 }));
  const walk = changeWalk(parts.box, { total: () => shown.places, more: () => rows.showNext(), say: frame.say });
  const bar = optionBar(frame, options, { layout, stats: parts.stats, walk, copy, close: first.onClose });
  const rows = rowsView(frame, { ...parts, ask, onDrawn: () => requestAnimationFrame(walk.mark) });
  let wanted = { title: "", versions: [], ...first };
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
    const width = parts.element.clientWidth;
    return width && width < NARROW ? "unified" : "split";
  }

  function show(pair) {
    wanted = { ...wanted, names: undefined, label: undefined, ...pair };
    return refresh();
  }

  function refresh() {
    return frame.attempt("Compare", load);
  }

  /** Only what was asked for last is painted, or fails. */
  async function load() {
    const mine = ++asked;
    const slow = setTimeout(() => parts.box.setAttribute("aria-busy", "true"), SLOW_MS);
    try {
      const view = await pairs.get(ask(wanted));
      if (mine === asked) paint(view);
    } catch (error) {
      if (mine === asked) throw error;
    } finally {
      clearTimeout(slow);
      if (mine === asked) parts.box.removeAttribute("aria-busy");
    }
  }

  function paint(view) {
    const isNew = view !== shown;
    shown = view;
    painted = layout();
    parts.box.setAttribute("aria-label", `Differences of ${wanted.title || "two texts"}`);
    replace(parts.notes, view.notes.map((note) => h("p", {}, text(note))));
    parts.stats.textContent = summary(view);
    bar.update();
    rows.draw(view, { layout: painted, names: wanted.names ?? sideNames(wanted), title: wanted.title });
    if (isNew) announce(view);
    first.onPainted?.({ layout: painted });
  }

  function announce(view) {
    parts.box.scrollTop = 0;
    walk.reset();
    frame.say([wanted.label, spoken(view)].filter(Boolean).join(": "));
  }

  function copy() {
    return frame.attempt("Copy patch", async () => {
      const { text: patch } = await frame.call("patch", { old: shown.old, new: shown.new });
      const copied = await copyText(patch, parts.foot);
      frame.say(copied ? "The patch is on the clipboard" : "The patch is below, selected");
    });
  }

  function onOption(name) {
    parts.element.classList.toggle("mk-words", options.get("word_level"));
    parts.element.classList.toggle("mk-wrap", options.get("wrap"));
    bar.update();
    if (ASKS.has(name)) refresh();
    else if (name === "mode" && shown) paint(shown);
    else requestAnimationFrame(walk.mark);
  }

  /** What came with the state is painted at once; where it was cut to fit there, the whole follows. */
  function begin() {
    onOption("");
    if (first.view) put(first.view);
    if (first.view) paint(first.view);
    return first.view && !first.view.cut ? undefined : refresh();
  }

  function put(view) {
    if (!view.cut) pairs.put(view, view);
  }

  parts.element.prepend(bar.element);
  parts.middle.append(parts.box, walk.ticks);
  const stops = [
    watchWidth(parts.element, () => (shown && layout() !== painted ? paint(shown) : walk.mark())),
    options.on(onOption),
    frame.keys(bar.keys, first.keysWithin ?? parts.element),
    frame.onClose(dispose),
  ];
  begin();

  function dispose() {
    for (const stop of stops.splice(0)) stop();
    parts.element.remove();
  }

  return {
    element: parts.element,
    show,
    refresh,
    clear: pairs.clear,
    put,
    prefetch: (pair) => void pairs.get(ask(pair)).catch(() => undefined), // nobody waits for it
    dispose,
  };
}

function elements() {
  const stats = h("span", { class: "mk-stats" });
  const notes = h("div", { class: "mk-notes" });
  const box = h("div", { class: "mk-diff-box", role: "region", tabindex: "0" });
  const foot = h("div", { class: "mk-diff-foot" });
  const middle = h("div", { class: "mk-diff-frame" });
  return { stats, notes, box, foot, middle, element: h("div", { class: "mk-diff" }, notes, middle, foot) };
}

function watchWidth(element, fn) {
  const observer = new ResizeObserver(fn);
  observer.observe(element);
  return () => observer.disconnect();
}

/** `+2 −1 in 2 places` */
export function summary({ added, removed, places }) {
  return places ? `+${number(added)} −${number(removed)} in ${counted(places, "place")}` : "no difference";
}

function spoken({ added, removed, places, notes }) {
  if (!places) return notes.length ? "" : "no difference";
  return `${counted(added, "line")} added, ${number(removed)} removed in ${counted(places, "place")}`;
}

function sideNames({ old, new: fresh, versions }) {
  return [old, fresh].map((id) => {
    const version = versions.find((each) => each.id === id);
    return version ? `@${version.ordinal}` : id ? "" : "nothing";
  });
}
