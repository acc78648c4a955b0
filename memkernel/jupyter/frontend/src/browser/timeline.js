import { h, text } from "../dom.js";
import { actor, ago, glyph, moment, number, versionLine } from "../format.js";
import * as records from "../records.js";
import { historyEntry } from "./entry.js";
import { windowed } from "./windowed.js";

const ROW_PX = 44;
const SOON = 40; // so many rows before the last one that is here, the next ones are asked for
const SETTLE_MS = 150;

/** The versions of the selected memory, or of the whole store where none is selected, newest first: as Python says. */
export function timelinePane(desk) {
  const { frame } = desk;
  const count = h("span.mk-faint");
  const changes = new Map();
  let key = "";
  let versions = [];
  let next = null;
  let total = 0;
  let loading = false;
  let settling = 0;

  const list = windowed(ROW_PX, "listbox", "Versions, newest first", {
    draw: versionRow,
    look: desk.lookAt,
    open: (version, how) => (how === "click" ? desk.lookAt(version, how) : desk.compareWith(version)),
    key: () => false,
    paint: onPaint,
  });
  const element = h(
    "div.mk-pane.mk-history",
    { role: "region", "aria-label": "History" },
    h(
      "div.mk-bar",
      h("span.mk-title", "History"),
      count,
      h("span.mk-gap"),
      frame.button("Base", "Mark or unmark it as the base (c)", () => desk.markBase(list.active())),
      frame.button("Compare", "With the base, or the version before (d)", () => desk.compareWith(list.active())),
    ),
    list.element,
  );

  function take(rows, rowsTotal, nextId) {
    versions = rows;
    total = rowsTotal;
    next = nextId;
    paint();
  }

  function paint() {
    count.textContent = total ? number(total) : "";
    const active = list.active()?.id ?? desk.version();
    list.set(versions, ({ id }) => id === active);
  }

  async function load() {
    const had = versions;
    loading = true;
    const page = await desk.ask("History", "timeline", { path: key, before: next });
    loading = false;
    if (page && had === versions) take([...had, ...page.versions.map(records.version)], page.total, page.next);
  }

  function onPaint(drawn, end) {
    if (next && !loading && end > versions.length - SOON) load();
    clearTimeout(settling);
    settling = setTimeout(() => countLines(drawn), SETTLE_MS);
  }

  /** How many lines each version on screen added and removed. */
  async function countLines(drawn) {
    const unknown = drawn.filter(({ id }) => !changes.has(id)).map(({ id }) => id);
    if (!unknown.length) return;
    for (const id of unknown) changes.set(id, null);
    const found = await frame.call("changes", { versions: unknown }).catch(() => ({})); // a number less is no failure
    for (const [id, lines] of Object.entries(found.changes ?? {})) changes.set(id, lines);
    list.paint();
  }

  function versionRow(version, index) {
    const { id, ordinal, path, operation, redactedAt, at } = version;
    const did = redactedAt ? "redacted" : operation;
    const lines = changes.get(id);
    const base = id === frame.get("base_version") && h("span.mk-tag", "base");
    return historyEntry([index + 1, total], {
      ...{ id, did, selected: desk.version(), sign: glyph(version) },
      title: `${versionLine(version)} UTC, ${ago(at)}`,
      name: [h("b", `@${ordinal} `), ...(key || path === null ? [] : text(path))],
      end: [base || "", lines ? ` +${number(lines[0])} −${number(lines[1])}` : ""],
      facts: `${moment(at)} · ${actor(version)}`,
    });
  }

  frame.onClose(() => clearTimeout(settling));
  return {
    element,
    paint,
    versions: () => versions,
    active: list.active,
    dispose: list.dispose,
    /** What the state holds; the rest is asked for as it is looked at. */
    show() {
      key = frame.get("selected");
      const rows = frame.get("versions").map(records.version);
      take(rows, frame.get("versions_total"), rows.length < frame.get("versions_total") && rows.at(-1)?.id);
    },
  };
}

