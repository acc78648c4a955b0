// Rows as Python sends them -> the lines of a table, side by side or unified. Knows no element.

/**
 * One side of a line.
 *
 * @typedef {{number: number, kind: "same"|"went"|"came", spans: Array<[0|1, *]>}} Side
 * @typedef {{sides: [?Side, ?Side], starts: boolean}|{fold: Array}} Line `starts`: the first line of a place
 */

/** @returns {Line[]} the lines, an old and a new side in each; `inPlace`: the row before them had changed already */
export const splitLines = (rows, inPlace) => lines(rows, inPlace, sideBySide);

/** @returns {Line[]} the same with one side in each: of a change first all that went, then all that came */
export const unifiedLines = (rows, inPlace) => lines(rows, inPlace, oneBelowTheOther);

/** Whether the last of these rows is part of a change, which the next page may go on with. */
export const endsInPlace = (rows) => rows.length > 0 && isChange(rows.at(-1));

const isChange = ([sign]) => sign !== "=" && sign !== "f";

function lines(rows, inPlace, arrange) {
  const found = [];
  let change = [];
  const flush = () => {
    const goesOn = inPlace && !found.length;
    found.push(...arrange(change).map((sides, index) => ({ sides, starts: !index && !goesOn })));
    change = [];
  };
  for (const row of rows) {
    if (isChange(row)) {
      change.push(row);
      continue;
    }
    flush();
    found.push(row[0] === "f" ? { fold: row } : { sides: [same(row[1], row[3]), same(row[2], row[3])] });
  }
  flush();
  return found;
}

/** What went and what came beside each other, never staggered; lines that are a pair stay one. */
function sideBySide(change) {
  const pairs = [];
  let went = [];
  let came = [];
  const flush = () => {
    const longer = went.length > came.length ? went : came;
    pairs.push(...longer.map((_, index) => [went[index], came[index]]));
    went = [];
    came = [];
  };
  for (const row of change) {
    const [old, fresh] = sides(row);
    if (old && (fresh || came.length)) flush();
    if (old) went.push(old);
    if (fresh) came.push(fresh);
    if (old && fresh) flush();
  }
  flush();
  return pairs;
}

function oneBelowTheOther(change) {
  const both = change.map(sides);
  const went = both.filter(([old]) => old).map(([old]) => [old]);
  return [...went, ...both.filter(([, fresh]) => fresh).map(([, fresh]) => [undefined, fresh])];
}

function sides([sign, number, second, oldSpans, newSpans]) {
  if (sign === "-") return [side("went", number, [[0, second]])];
  if (sign === "+") return [undefined, side("came", number, [[0, second]])];
  return [side("went", number, oldSpans), side("came", second, newSpans)];
}

const side = (kind, number, spans) => ({ kind, number, spans });
const same = (number, marked) => side("same", number, [[0, marked]]);

/** What a fold becomes once some of its lines are known, from its beginning or from its end. */
export function unfolded([, old, fresh, count], texts, fromEnd = false) {
  const left = count - texts.length;
  const skipped = fromEnd ? left : 0;
  const passed = fromEnd ? 0 : texts.length;
  const shown = texts.map((marked, index) => ["=", old + skipped + index, fresh + skipped + index, marked]);
  const rest = left ? [["f", old + passed, fresh + passed, left]] : [];
  return fromEnd ? [...rest, ...shown] : [...shown, ...rest];
}
