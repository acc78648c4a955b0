import { h, plain, replace, text } from "../dom.js";
import { actor, ago, counted, glyph, moment, number, versionLine } from "../format.js";
import * as records from "../records.js";
import { windowed } from "./windowed.js";

const ROW_PX = 44;
const SOON = 40; // so many rows before the last one that is here, the next ones are asked for
const SETTLE_MS = 150;
const MOST_COUNTED = 60;
const SHORT = 12;

/**
 * The versions of the selected memory, or of the whole store where none is selected, newest first.
 *
 * @param {object} desk
 * @returns {{element: HTMLElement, show: (key: string) => void}}
 */
export function timelinePane(desk) {
  const { frame } = desk;
  const title = h("span", { class: "mk-pane-title" });
  const count = h("span", { class: "mk-faint" });
  const hint = h("div", { class: "mk-foot mk-hint" });
  const changes = new Map();
  let key = null;
  let versions = [];
  let next = null;
  let total = 0;
  let loading = false;
  let settling = 0;

  const list = windowed({
    role: "listbox",
    label: "Versions, newest first",
    rowPx: ROW_PX,
    draw: (version, index) => versionRow(version, index, { desk, key, total, changes }),
    onMove: (version, _, how) => how === "key" && desk.lookAt(version),
    onOpen: (version, _, how) => (how === "click" ? desk.lookAt(version, "click") : desk.compareWith(version)),
    onKey,
    onReach,
  });
  const element = h(
    "div",
    { class: "mk-pane mk-history", role: "region", "aria-label": "History" },
    h("div", { class: "mk-pane-head" }, title, count),
    list.element,
    hint,
  );

  function onKey(event, version) {
    const action = { c: desk.markBase, d: desk.compareWith, " ": desk.lookAt }[event.key];
    if (!action || !version) return false;
    action(version);
    return true;
  }

  /** The timeline of another memory, or of the store: what the state holds of it at once, the rest as it is looked at. */
  function show(nextKey, { fromState = false } = {}) {
    const same = nextKey === key;
    key = nextKey;
    title.textContent = key ? "History" : "History of the store";
    if (fromState) return put(frame.get("versions").map(records.version), frame.get("versions_total"));
    if (!same) put([], 0, "…");
    return load(true);
  }

  function put(rows, rowsTotal, words) {
    versions = rows;
    total = rowsTotal;
    next = rows.length < total ? (rows.at(-1)?.id ?? null) : null;
    loading = false;
    paint(words);
  }

  function paint(words = counted(total, "version")) {
    count.textContent = words;
    list.set(versions, versions.findIndex(({ id }) => id === desk.version()));
    paintHint();
  }

  function paintHint() {
    const base = versions.find(({ id }) => id === frame.get("base_version"));
    replace(hint, ...(base ? baseWords(base) : [h("kbd", {}, "Enter"), " compare ", h("kbd", {}, "c"), " mark as base"]));
  }

  function baseWords(base) {
    const unmark = () => desk.markBase(base);
    return [h("kbd", {}, "Enter"), ` compare with @${base.ordinal} `, frame.button("Unmark", "Unmark the base (c)", unmark)];
  }

  async function load(anew = false) {
    if (loading && !anew) return;
    const wanted = key;
    loading = true;
    const page = await frame.attempt("Show the history", () =>
      frame.call("timeline", { path: wanted, before: anew ? "" : next }),
    );
    if (wanted !== key) return;
    loading = false;
    if (!page) return;
    const rows = page.versions.map(records.version);
    versions = anew ? rows : [...versions, ...rows];
    next = page.next;
    total = page.total;
    paint();
  }

  function onReach(last) {
    if (next !== null && !loading && last >= versions.length - SOON) load();
    clearTimeout(settling);
    settling = setTimeout(countLines, SETTLE_MS);
  }

  /** How many lines each version on screen added and removed. */
  async function countLines() {
    const unknown = list.drawn().filter(({ id, redactedAt }) => !changes.has(id) && !redactedAt);
    const ids = unknown.slice(0, MOST_COUNTED).map(({ id }) => id);
    if (!ids.length) return;
    for (const id of ids) changes.set(id, null);
    const found = await frame.call("changes", { versions: ids }).catch(() => null); // a number less is no failure
    if (!found) return;
    for (const [id, lines] of Object.entries(found.changes)) changes.set(id, lines);
    list.paint();
  }

  frame.onClose(() => clearTimeout(settling));
  return {
    element,
    show,
    repaint: () => paint(),
    list,
    versions: () => versions,
    active: () => list.items[list.active],
    /** Whether the state says the same as what is here, or an answer is on its way. */
    agrees: () => loading || (frame.get("versions")[0]?.[0] === versions[0]?.id && frame.get("versions_total") === total),
    find: (id) => versions.find((version) => version.id === id),
    dispose: list.dispose,
  };
}

function versionRow(version, index, { desk, key, total, changes }) {
  const did = version.redactedAt ? "redacted" : version.operation;
  const base = version.id === desk.base();
  const where = key || version.path === null ? [] : text(version.path);
  return h(
    "div",
    {
      class: "mk-row mk-version",
      role: "option",
      "aria-setsize": total,
      "aria-posinset": index + 1,
      "aria-selected": String(version.id === desk.version()),
      title: `${versionLine(version)} UTC, ${ago(version.at)}${version.path === null ? "" : `, ${plain(version.path)}`}`,
    },
    h("span", { class: `mk-glyph mk-${did}`, role: "img", "aria-label": did }, glyph(version)),
    h("span", { class: "mk-version-what" }, h("b", {}, `@${version.ordinal}`), " ", ...where, base ? h("span", { class: "mk-tag" }, "base") : null),
    lines(changes.get(version.id)),
    h("span", { class: "mk-version-who" }, `${moment(version.at)} · ${shortActor(version)}`),
  );
}

/** An id's beginning is enough to tell actors apart; the whole of it is in the title. */
function shortActor(version) {
  const { actorId } = version;
  return actor({ ...version, actorId: actorId && actorId.length > SHORT ? `${actorId.slice(0, SHORT)}…` : actorId });
}

function lines(found) {
  if (!found) return null;
  const [added, removed] = found;
  return h("span", { class: "mk-row-end" }, `+${number(added)} −${number(removed)}`);
}
