import { h, text } from "../dom.js";
import { ago, counted, moment, number, size } from "../format.js";

const SIGNS = {
  created: ["+", "mk-made"],
  modified: ["~", ""],
  deleted: ["−", "mk-gone"],
  merged: ["⇄", ""],
  pulled: ["↓", "mk-faint"],
  removed: ["↓", "mk-faint"],
  refused: ["!", "mk-bad"],
  "not saved": ["✗", "mk-bad"],
  restored: ["✗", "mk-bad"],
  "not synced": ["✗", "mk-bad"],
};
const FAILED = new Set(["error", "timeout", "interrupted", "died", "out_of_memory", "not run"]);

/**
 * One cell, or what happened between two, with what became of its files.
 *
 * @param {{key: string, changes: object[]}} entry
 * @param {{isNamed: boolean, compare: (change: object) => {button: HTMLElement, place: HTMLElement}}} how `isNamed`:
 *   paths are told with their store; `compare`: the way to a version's difference
 */
export function entryItem(entry, how) {
  const more = `${counted(entry.leftOut, "more file")}, not shown here`;
  const left = entry.leftOut ? h("li", { class: "mk-faint" }, more) : null;
  const files = entry.changes.map((change) => fileItem(change, how));
  return h(
    "li",
    { class: "mk-entry", "data-status": entry.status },
    headLine(entry),
    entry.notes.map((note) => h("p", { class: "mk-note" }, note)),
    files.length || left ? h("ul", { class: "mk-files" }, files, left) : null,
  );
}

function headLine(entry) {
  const exit = entry.exitCode ? ` · exit status ${entry.exitCode}` : "";
  const kind = FAILED.has(entry.status) ? "mk-bad" : "";
  const words = entry.words ? h("span", { class: kind }, `${entry.words}${exit}`) : null;
  const code = h("code", { class: "mk-code-line" }, entry.code);
  const when = { class: "mk-faint", datetime: entry.at, title: `${moment(entry.at)} UTC, ${ago(entry.at)}` };
  return h(
    "div",
    { class: "mk-entry-head" },
    h("b", {}, entry.title),
    words,
    entry.took ? h("span", { class: "mk-took" }, entry.took) : null,
    entry.code ? code : h("span", { class: "mk-gap" }),
    h("time", when, entry.at.slice(11, 19)),
  );
}

function fileItem(change, { isNamed, compare }) {
  const [sign, kind] = SIGNS[change.outcome] ?? ["·", ""];
  const path = [isNamed ? `${change.slug}:` : "", ...text(change.path)];
  const comparing = change.version ? compare(change) : null;
  return h(
    "li",
    { class: "mk-file" },
    h("span", { class: `mk-outcome ${kind}` }, `${sign} ${change.outcome}`),
    comparing ? comparing.button : h("code", { class: "mk-path" }, path),
    change.version ? h("span", { class: "mk-facts" }, facts(change)) : h("span", { class: "mk-reason" }, change.reason),
    comparing?.place,
  );
}

/** `+2 −1 · @3 · 1.7 KB` */
function facts({ added, removed, ordinal, size: bytes }) {
  return [lines(added, removed), `@${ordinal}`, size(bytes)].filter(Boolean).join(" · ");
}

function lines(added, removed) {
  if (added === null) return "";
  const said = [added ? `+${number(added)}` : "", removed ? `−${number(removed)}` : ""];
  return said.filter(Boolean).join(" ") || "±0";
}
