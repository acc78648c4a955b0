import { historyEntry } from "../browser/entry.js";
import { windowed } from "../browser/windowed.js";
import { diffPanel } from "../diff/panel.js";
import { aria, h, plain, replace, text } from "../dom.js";
import { ago, counted, moment } from "../format.js";
import { pointControl } from "./points.js";

const ROW_PX = 44;
const MOST_ROWS = 8;
const SETTLE_MS = 150;

/** What differs in a store between two points: the points, the memories, and the diff of one of them. */
export function storeDiff(frame) {
  const old = pointControl(frame, "From", [",", "."], (point) => look({ old: point }));
  const fresh = pointControl(frame, "To", ["[", "]"], (point) => look({ new: point }));
  const summary = h("span.mk-stats");
  const filter = h("input.mk-input.mk-query", {
    ...{ type: "search", placeholder: "Filter by path", "aria-label": "Filter by path (/)", oninput: onFilter },
  });
  const nothing = h("p.mk-empty", "No difference");
  const below = h("div");
  const list = windowed(ROW_PX, "listbox", "Memories that differ", {
    draw: rowOf,
    look: (row) => wait(() => select(row)),
    open: select,
    key: () => false,
    paint: onPaint,
  });
  let rows = [];
  let next = null;
  let loading = false;
  let asking = 0;
  let panel = null;
  let shown = "";
  let timer;

  function wait(action) {
    clearTimeout(timer);
    timer = setTimeout(action, SETTLE_MS);
  }

  async function look(asked) {
    asking += 1;
    await frame.attempt("Compare", () => frame.call("look", asked));
    asking -= 1;
    points();
  }

  function onFilter() {
    wait(() => look({ query: filter.value }));
  }

  /** The controls say what is shown, but for the time in which they ask for something else. */
  function points() {
    if (asking) return;
    const { old: from, new: to, first, head } = frame.get("view");
    old.update(from, first, head);
    fresh.update(to, first, head);
  }

  function take(fetched, following) {
    rows = fetched.map(record);
    next = following;
    list.element.style.height = `${Math.min(MOST_ROWS, rows.length) * ROW_PX}px`;
    list.element.hidden = !rows.length;
    nothing.hidden = rows.length > 0;
    list.set(rows, ({ id }) => id === frame.get("selected"));
  }

  function draw() {
    const view = frame.get("view");
    points();
    summary.textContent = view.summary;
    if (frame.root.getRootNode().activeElement !== filter) filter.value = frame.get("query");
    take(view.rows, view.next);
    showSelected();
    frame.say(`${view.old[1]} → ${view.new[1]}: ${counted(view.matching, "memory", "memories")}, ${view.summary}`);
    ready();
  }

  function ready(layout = "") {
    frame.ready([frame.get("old"), frame.get("new"), layout].filter((part) => part !== "").join(":"));
  }

  /** The next rows, and the numbers of those on screen that have none yet. */
  async function onPaint(drawn, end) {
    if (loading) return;
    loading = true;
    const had = rows;
    const unknown = drawn.filter(({ lines }) => lines === null).map(({ id }) => id);
    if (next !== null && end > rows.length - MOST_ROWS) {
      const more = await frame.attempt("More", () => frame.call("more", { start: next }));
      if (more && had === rows) rows.push(...more.rows.map(record));
      if (had === rows) next = more ? more.next : null;
    } else if (unknown.length) {
      const counts = await frame.call("counts", { changes: unknown }).catch(() => ({})); // a number less is no failure
      const otherwise = Object.keys(counts).length ? null : "";
      for (const row of drawn) row.lines ??= counts[row.id] ?? otherwise;
    } else return (loading = false);
    loading = false;
    return list.paint();
  }

  function rowOf({ id, sign, kind, path, lines, note, by, at }, index) {
    return historyEntry([index + 1, frame.get("view").matching], {
      ...{ id, selected: frame.get("selected"), did: kind, sign },
      title: `${plain(path)}, ${kind} ${ago(at)}`,
      name: text(path),
      end: lines ?? "",
      facts: [kind, by, `${moment(at)} UTC`, note].filter(Boolean).join(" · "),
    });
  }

  function select(row) {
    clearTimeout(timer);
    frame.set("selected", row.id);
  }

  function showSelected() {
    const row = rows.find(({ id }) => id === frame.get("selected"));
    list.paint();
    if (!row) {
      panel?.dispose();
      panel = null;
      return;
    }
    const pair = { old: row.old, new: row.new, title: plain(row.path), label: plain(row.path) };
    const key = `${pair.old}:${pair.new}`;
    if (panel && key !== shown) panel.show(pair);
    shown = key;
    if (!panel) {
      panel = diffPanel(frame, { ...pair, onClose: () => select({ id: "" }), onPainted: ready });
      replace(below, panel.element);
    }
  }

  aria(frame.root, "label", `What differs in ${plain(frame.get("store_name"))}`);
  frame.body.append(
    h("div.mk-bar", h("span.mk-title", text(frame.get("store_name"))), summary, h("span.mk-gap"), filter),
    h("div.mk-bar", old.element, fresh.element),
    list.element,
    nothing,
    below,
  );
  frame.keys({
    ...old.keys,
    ...fresh.keys,
    "/": ["Filter by path", () => filter.focus()],
    Escape: ["Close the diff", () => frame.get("selected") && (select({ id: "" }), list.element.focus())],
  });
  frame.on("view", draw);
  frame.on("selected", showSelected);
  frame.onClose(() => (clearTimeout(timer), list.dispose()));
  draw();
}

/** A change as it travels (widgets/store_diff.py). */
function record([id, sign, kind, path, lines, note, by, at, old, fresh]) {
  return { id, sign, kind, path, lines, note, by, at, old, new: fresh };
}
