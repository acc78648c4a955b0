import { h, text } from "../dom.js";
import { counted, number } from "../format.js";
import { splitLines, unifiedLines } from "./layout.js";

/** So many lines of a fold are shown at a time, above or below it. */
export const FOLD_STEP = 10;
/** And never more than so many. */
export const FOLD_MOST = 2_000;

const TAGS = { went: "del", came: "ins" };
const COLUMNS = { split: ["n", "code", "n", "code"], unified: ["n", "n", "code"] };

/**
 * An empty table for one layout, under the names of the two texts.
 *
 * @param {"split"|"unified"} layout
 * @param {[string, string]} names
 */
export function table(layout, names, caption) {
  const heads = layout === "split" ? names.map((name) => head(2, name)) : [head(3, ...signed(names))];
  return h(
    "table",
    { class: `mk-table mk-${layout}` },
    h("caption", { class: "mk-sr" }, caption),
    h("colgroup", {}, ...COLUMNS[layout].map((kind) => h("col", { class: `mk-col-${kind}` }))),
    h("thead", {}, h("tr", {}, ...heads)),
  );
}

function head(span, ...names) {
  return h("th", { scope: "colgroup", colspan: span }, ...names);
}

/** As a unified diff begins: what the lines that went are of, and those that came. */
function signed(names) {
  return names.map((name, index) => h("div", {}, `${"−+"[index]} ${name}`));
}

/**
 * The rows as elements.
 *
 * @param {Array} rows
 * @param {{layout: "split"|"unified", inPlace?: boolean, expand: Function}} how for a fold there is
 *   `expand(element, row, count, fromEnd)`
 */
export function lineElements(rows, { layout, inPlace = false, expand }) {
  const arrange = layout === "split" ? splitLines : unifiedLines;
  const draw = layout === "split" ? splitCells : unifiedCells;
  return arrange(rows, inPlace).map((line) => {
    if (line.fold) return foldRow(line.fold, COLUMNS[layout].length, expand);
    return h("tr", line.starts ? { "data-place": true, tabindex: "-1" } : {}, ...draw(line.sides));
  });
}

function splitCells([old, fresh]) {
  return [old, fresh].flatMap((side) => (side ? [numberCell(side.number), code(side)] : [numberCell(null), filler()]));
}

function unifiedCells([old, fresh]) {
  return [numberCell(old?.number), numberCell(fresh?.number), code(fresh ?? old)];
}

/** The number is painted from its attribute: it is not selected, not copied, not found by a search. */
function numberCell(number) {
  return h("td", { class: "mk-n", "data-n": number ?? null });
}

function filler() {
  return h("td", { class: "mk-filler" });
}

function code({ kind, spans }) {
  const tag = TAGS[kind];
  if (!tag) return h("td", { class: "mk-line" }, ...text(spans[0][1]));
  const words = spans.some(([changed]) => changed);
  if (!words) return h("td", { class: `mk-line mk-${kind}` }, h(tag, {}, ...spans.flatMap(([, each]) => text(each))));
  return h("td", { class: `mk-line mk-${kind} mk-has-words` }, ...spans.flatMap((span) => word(span, tag)));
}

function word([changed, marked], tag) {
  return changed ? [h(tag, { class: "mk-word" }, ...text(marked))] : text(marked);
}

function foldRow(row, columns, expand) {
  const line = h("tr", { class: "mk-fold" });
  const button = (label, title, count, fromEnd) => {
    const show = () => expand(line, row, count, fromEnd);
    return h("button", { type: "button", class: "mk-fold-step", title, onclick: show }, label);
  };
  const few = row[3] > FOLD_STEP;
  const all = Math.min(row[3], FOLD_MOST);
  const title = all < row[3] ? `Show the first ${number(all)} of them` : "Show them";
  const cell = h(
    "td",
    { colspan: columns },
    few ? button(`↓ ${FOLD_STEP}`, `Show the first ${FOLD_STEP} of them`, FOLD_STEP, false) : null,
    button(`⋯ ${counted(row[3], "unchanged line")}`, title, all, false),
    few ? button(`↑ ${FOLD_STEP}`, `Show the last ${FOLD_STEP} of them`, FOLD_STEP, true) : null,
  );
  line.append(cell);
  return line;
}
