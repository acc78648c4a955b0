import { h, plain, text } from "../dom.js";
import { actor, ago, counted, glyph, moment, number, versionLine } from "../format.js";
import * as records from "../records.js";
import { windowed } from "./windowed.js";

const ROW_PX = 44;
const SOON = 40; // so many rows before the last one that is here, the next ones are asked for
const SETTLE_MS = 150;
const MOST_COUNTED = 60;
const SHORT = 12;

/** The versions of the selected memory, or of the whole store where none is selected, newest first. */
export function timelinePane(desk) {
  const { frame } = desk;
  const count = h("span", { class: "mk-faint" });
  const changes = new Map();
  let key = null;
  let versions = [];
  let next = null;
  let total = 0;
  let loading = null; // the key whose versions are on their way
  let settling = 0;

  const list = windowed(ROW_PX, "listbox", "Versions, newest first", {
    draw: versionRow,
    look: desk.lookAt,
    open: (version, how) => (how === "click" ? desk.lookAt(version, how) : desk.compareWith(version)),
    key: ({ key: pressed }, version) => pressed === " " && version && [desk.lookAt(version, "click")],
    paint: onPaint,
  });
  const element = h(
    "div",
    { class: "mk-pane mk-history", role: "region", "aria-label": "History" },
    h(
      "div",
      { class: "mk-pane-head" },
      h("b", {}, "History"),
      count,
      h("span", { class: "mk-gap" }),
      frame.button("Base", "Mark the version as the base, or unmark it (c)", () => desk.markBase(list.active())),
      frame.button("Compare", "With the base, or else the version before (d)", () => desk.compareWith(list.active())),
    ),
    list.element,
  );

  function show(nextKey) {
    if (nextKey !== key) take([], 0);
    key = nextKey;
    return load("");
  }

  function take(rows, rowsTotal) {
    versions = rows;
    total = rowsTotal;
    next = rows.length < total ? (rows.at(-1)?.id ?? null) : null;
    paint();
  }

  function paint() {
    count.textContent = total ? number(total) : "";
    const active = list.active()?.id ?? desk.version();
    list.set(versions, ({ id }) => id === active);
  }

  async function load(before) {
    const wanted = (loading = key);
    const page = await frame.attempt("History", () => frame.call("timeline", { path: wanted, before }));
    if (wanted !== key) return;
    loading = null;
    if (!page) return;
    const rows = page.versions.map(records.version);
    take(before ? [...versions, ...rows] : rows, page.total);
    next = page.next;
  }

  function onPaint(drawn, end) {
    if (next && loading === null && end > versions.length - SOON) load(next);
    clearTimeout(settling);
    settling = setTimeout(() => countLines(drawn), SETTLE_MS);
  }

  /** How many lines each version on screen added and removed. */
  async function countLines(drawn) {
    const unknown = drawn.filter(({ id }) => !changes.has(id)).map(({ id }) => id);
    if (!unknown.length) return;
    for (const id of unknown) changes.set(id, null);
    const asked = { versions: unknown.slice(0, MOST_COUNTED) };
    const found = await frame.call("changes", asked).catch(() => ({ changes: {} })); // a number less is no failure
    for (const [id, lines] of Object.entries(found.changes)) changes.set(id, lines);
    list.paint();
  }

  function versionRow(version, index) {
    const { id, ordinal, path, operation, redactedAt, at } = version;
    const did = redactedAt ? "redacted" : operation;
    const lines = changes.get(id);
    return h(
      "div",
      {
        class: "mk-row mk-version",
        role: "option",
        title: `${path === null || key ? "" : `${plain(path)} `}${versionLine(version)} UTC, ${ago(at)}`,
        "aria-setsize": total,
        "aria-posinset": index + 1,
        "aria-selected": String(id === desk.version()),
      },
      h("span", { class: `mk-glyph mk-${did}`, role: "img", "aria-label": did }, glyph(version)),
      h("span", { class: "mk-name" }, h("b", {}, `@${ordinal} `), ...(key || path === null ? [] : text(path))),
      id === frame.get("base_version") ? h("span", { class: "mk-tag" }, "base") : null,
      h("span", { class: "mk-end" }, lines ? `+${number(lines[0])} −${number(lines[1])}` : ""),
      h("span", { class: "mk-end mk-name" }, `${moment(at)} · ${shortActor(version)}`),
    );
  }

  frame.onClose(() => clearTimeout(settling));
  return {
    element,
    show,
    paint,
    versions: () => versions,
    active: list.active,
    dispose: list.dispose,
    find: (id) => versions.find((version) => version.id === id),
    /** What the state holds, without a question. */
    start(stateKey) {
      key = stateKey;
      take(frame.get("versions").map(records.version), frame.get("versions_total"));
    },
    /** Whether the state says the same as what is here, or an answer is on its way. */
    agrees() {
      const [newest] = frame.get("versions");
      return loading !== null || (frame.get("versions_total") === total && newest?.[0] === versions[0]?.id);
    },
  };
}

/** An id's beginning tells actors apart; the whole of it is in the title. */
function shortActor(version) {
  const { actorId } = version;
  return actor({ ...version, actorId: actorId?.length > SHORT ? `${actorId.slice(0, SHORT)}…` : actorId });
}
