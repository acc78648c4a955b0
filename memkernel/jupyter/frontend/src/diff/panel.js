import { h, replace, text } from "../dom.js";
import { counted, number } from "../format.js";
import { changeWalk } from "./changes.js";
import { copyText } from "./copying.js";
import { endsInPlace, unfolded } from "./layout.js";
import { localOptions } from "./options.js";
import { optionBar } from "./option_bar.js";
import { pairCache } from "./pairs.js";
import { lineElements, table } from "./table.js";

const NARROW = 640;
const SLOW_MS = 150;
const REPAINTS = new Set(["mode"]);
const ASKS = new Set(["fold", "context", "ignore_whitespace"]);

/**
 * Two texts and what differs, with everything to look at it: inside every widget that shows a change.
 *
 * It asks `diff`, `lines` and `patch` (widgets/comparing.py).
 *
 * @param {object} frame
 * @param {object} first what to show first; the rest as in `show`, and
 * @param {string} first.title what the texts are of: a path
 * @param {object[]} [first.versions] records of versions, for their names
 * @param {object} [first.view] the answer for this pair, if it is known already
 * @param {object} [first.options] where the options live: by default here
 * @param {HTMLElement} [first.keysWithin] where its keys work: by default in the panel
 * @param {() => void} [first.onClose] with it there is a button to close
 * @param {(facts: {view: object, layout: string}) => void} [first.onPainted]
 * @returns {{element: HTMLElement, show: (pair: {old: string, new: string, names?: string[], label?: string, title?: string,
 *   versions?: object[]}) => Promise<void>, prefetch: (pair: object) => void, put: (view: object) => void,
 *   refresh: () => Promise<void>, dispose: () => void}}
 */
export function diffPanel(frame, first) {
  const options = first.options ?? localOptions();
  const box = h("div", { class: "mk-diff-box", role: "region", tabindex: "0" });
  const stats = h("span", { class: "mk-stats" });
  const notes = h("div", { class: "mk-notes" });
  const foot = h("div", { class: "mk-diff-foot" });
  const walk = changeWalk(box, { total: () => shown?.places ?? 0, more: showNext, say: frame.say });
  let wanted = { title: "", versions: [], ...first };
  let shown = null;
  let painted = "";
  let asked = 0;

  const question = (pair = wanted) => ({
    old: pair.old,
    new: pair.new,
    ignore_whitespace: options.get("ignore_whitespace"),
    context: options.get("fold") ? options.get("context") : null,
  });
  const pairs = pairCache((what) => frame.call("diff", { ...what, start: 0 }));
  const bar = optionBar(frame, options, { layout, stats, walk, copy, close: first.onClose });
  const element = h("div", { class: "mk-diff" }, bar.element, notes, h("div", { class: "mk-diff-frame" }, box, walk.ticks), foot);

  function layout() {
    const mode = options.get("mode");
    if (mode !== "auto") return mode;
    const width = element.clientWidth;
    return width && width < NARROW ? "unified" : "split";
  }

  function show(pair) {
    wanted = { ...wanted, names: undefined, label: undefined, ...pair };
    return refresh();
  }

  function refresh() {
    return frame.attempt("Compare", load);
  }

  async function load() {
    const mine = ++asked;
    const slow = setTimeout(() => box.setAttribute("aria-busy", "true"), SLOW_MS);
    try {
      const view = await pairs.get(question());
      if (mine === asked) paint(view);
    } catch (error) {
      if (mine === asked) throw error;
    } finally {
      clearTimeout(slow);
      if (mine === asked) box.removeAttribute("aria-busy");
    }
  }

  function paint(view) {
    const isNew = view !== shown;
    shown = view;
    painted = layout();
    element.dataset.layout = painted;
    box.setAttribute("aria-label", `Differences of ${wanted.title || "two texts"}`);
    replace(notes, view.notes.map((note) => h("p", {}, text(note))));
    stats.textContent = summary(view);
    bar.update();
    drawRows();
    if (isNew) {
      box.scrollTop = 0;
      walk.reset();
      frame.say([wanted.label, spoken(view)].filter(Boolean).join(": "));
    }
    first.onPainted?.({ view, layout: painted });
  }

  function drawRows() {
    if (shown.rows.length) {
      const body = h("tbody", {}, ...elements(shown.rows));
      const drawn = table(painted, names(), `Differences of ${wanted.title}`);
      drawn.append(body);
      replace(box, drawn);
    } else {
      replace(box, h("p", { class: "mk-empty" }, shown.notes.length ? "There is no text to compare." : "The texts do not differ."));
    }
    drawFoot();
  }

  function drawFoot() {
    const left = shown.next === null ? 0 : shown.total - shown.next;
    const more = () => showNext();
    replace(foot, left > 0 ? frame.button(`Show next ${number(Math.min(left, 2000))} of ${counted(left, "row")}`, "Show more rows", more) : null);
    requestAnimationFrame(walk.mark);
  }

  function names() {
    return wanted.names ?? [wanted.old, wanted.new].map((id) => sideName(id, wanted.versions));
  }

  function elements(rows, inPlace = false) {
    return lineElements(rows, { layout: painted, inPlace, expand });
  }

  function expand(line, row, count, fromEnd) {
    const view = shown;
    const start = row[2] + (fromEnd ? row[3] - count : 0);
    return frame.attempt("Show lines", async () => {
      const { rows: texts } = await frame.call("lines", { new: view.new, start, count });
      const at = view.rows.indexOf(row);
      if (at < 0) return;
      const now = unfolded(row, texts, fromEnd);
      view.rows.splice(at, 1, ...now);
      if (view !== shown || !line.isConnected) return;
      const drawn = elements(now);
      line.replaceWith(...drawn);
      (drawn.find((each) => each.className === "mk-fold")?.querySelector("button") ?? box).focus();
      walk.mark();
    });
  }

  /** @returns {Promise<boolean>} whether there were more rows */
  async function showNext() {
    const view = shown;
    if (!view || view.next === null) return false;
    const page = await frame.attempt("Show more rows", () => frame.call("diff", { ...question(view), start: view.next }));
    if (!page || view !== shown || view.next !== page.start) return false;
    const inPlace = endsInPlace(view.rows);
    view.rows.push(...page.rows);
    view.next = page.next;
    box.querySelector("tbody").append(...elements(page.rows, inPlace));
    drawFoot();
    frame.say(`${counted(page.rows.length, "more row")}`);
    return true;
  }

  function copy() {
    return frame.attempt("Copy patch", async () => {
      const { text: patch } = await frame.call("patch", { old: shown.old, new: shown.new });
      const copied = await copyText(patch, foot);
      frame.say(copied ? "The patch is on the clipboard" : "The patch is below, selected");
    });
  }

  function onOption(name) {
    element.classList.toggle("mk-words", options.get("words"));
    element.classList.toggle("mk-wrap", options.get("wrap"));
    bar.update();
    if (ASKS.has(name)) refresh();
    else if (shown && REPAINTS.has(name)) paint(shown);
    else requestAnimationFrame(walk.mark);
  }

  /** What came with the state is painted at once; where it was cut to fit there, the whole follows. */
  function begin() {
    if (!first.view) return refresh();
    if (!first.view.cut) put(first.view);
    paint(first.view);
    return first.view.cut ? refresh() : undefined;
  }

  function put(view) {
    if (!view.cut) pairs.put(view, view);
  }

  const observer = new ResizeObserver(() => {
    if (shown && layout() !== painted) paint(shown);
    else walk.mark();
  });
  observer.observe(element);
  frame.onClose(() => observer.disconnect());
  options.on(onOption);
  onOption("");
  const forget = frame.keys(bar.keys, first.keysWithin ?? element);
  begin();

  return {
    element,
    show,
    refresh,
    clear: pairs.clear,
    put,
    prefetch(pair) {
      Promise.resolve(pairs.get(question(pair))).catch(() => undefined); // nobody waits for it
    },
    dispose() {
      observer.disconnect();
      forget?.();
      element.remove();
    },
  };
}

/** `+2 −1 in 2 places` */
export function summary({ added, removed, places }) {
  return places ? `+${number(added)} −${number(removed)} in ${counted(places, "place")}` : "no difference";
}

function spoken({ added, removed, places, notes }) {
  if (!places) return notes.length ? "" : "no difference";
  return `${counted(added, "line")} added, ${number(removed)} removed in ${counted(places, "place")}`;
}

function sideName(id, versions) {
  const version = versions.find((each) => each.id === id);
  return version ? `@${version.ordinal}` : id ? "" : "nothing";
}
