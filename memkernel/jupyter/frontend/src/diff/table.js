import { h, text } from "../dom.js";
import { counted, number } from "../format.js";
import { splitLines, unifiedLines } from "./layout.js";

/** So many lines of a fold are shown at a time, above or below it. */
export const FOLD_STEP = 10;
/** And never more than so many. */
export const FOLD_MOST = 2_000;

const TAGS = { went: "del", came: "ins" };
const COLUMNS = { split: ["n", "cell", "n", "cell"], unified: ["n", "n", "cell"] };

/**
 * An empty table for one layout, under the names of the two texts.
 *
 * @param {"split"|"unified"} layout
 * @param {[string, string]} names
 */
export function table(layout, names) {
  const heads = layout === "split" ? names.map((name) => head(2, name)) : [head(3, signed(names))];
  return h(
    `table.mk-table.mk-${layout}`,
    h("colgroup", COLUMNS[layout].map((kind) => h(`col.mk-col-${kind}`))),
    h("thead", h("tr", heads)),
  );
}

function head(span, names) {
  return h("th", { scope: "colgroup", colspan: span }, names);
}

/** As a unified diff begins: what the lines that went are of, and those that came. */
function signed(names) {
  return names.map((name, index) => h("div", `${"−+"[index]} ${name}`));
}

/**
 * The rows as elements.
 *
 * @param {Array} rows
 * @param {{layout: "split"|"unified", inPlace?: boolean, expand: Function}} how for a fold there is
 *   `expand(element, row, count, fromEnd)`
 */
export function lineElements(rows, { layout, inPlace, expand }) {
  const isSplit = layout === "split";
  const lines = isSplit ? splitLines(rows, inPlace) : unifiedLines(rows, inPlace);
  return lines.map(({ fold, sides, starts }) => {
    if (fold) return foldRow(fold, COLUMNS[layout].length, expand);
    const cells = isSplit ? sides.flatMap((side) => [numberCell(side), lineCell(side)]) : unifiedCells(sides);
    return starts ? h("tr", { "data-place": true, tabindex: "-1" }, cells) : h("tr", cells);
  });
}

function unifiedCells([old, fresh]) {
  return [numberCell(old), numberCell(fresh), lineCell(fresh ?? old)];
}

/** The number is painted from its attribute: it is not selected, not copied, not found by a search. */
function numberCell(side) {
  return h("td.mk-n", { "data-n": side?.number });
}

function lineCell(side) {
  if (!side) return h("td.mk-n");
  const { kind, spans } = side;
  const tag = TAGS[kind];
  if (!tag) return h("td.mk-cell", text(spans[0][1]));
  const line = `td.mk-cell.mk-${kind}`;
  if (spans.some(([changed]) => changed)) return h(line, spans.flatMap((span) => word(span, tag)));
  return h(line, h(tag, spans.flatMap(([, marked]) => text(marked))));
}

function word([changed, marked], tag) {
  return changed ? [h(`${tag}.mk-word`, text(marked))] : text(marked);
}

function foldRow(row, columns, expand) {
  const count = row[3];
  const line = h("tr");
  const show = (label, end, lines, fromEnd) => {
    const props = { type: "button", title: `Show the ${end} ${number(lines)} of them` };
    return h("button.mk-button", { ...props, onclick: () => expand(line, row, lines, fromEnd) }, label);
  };
  const buttons = [show(`⋯ ${counted(count, "unchanged line")}`, "first", Math.min(count, FOLD_MOST), false)];
  if (count > FOLD_STEP) {
    buttons.unshift(show(`↓ ${FOLD_STEP}`, "first", FOLD_STEP, false));
    buttons.push(show(`↑ ${FOLD_STEP}`, "last", FOLD_STEP, true));
  }
  line.append(h("td.mk-fold", { colspan: columns }, buttons));
  return line;
}
