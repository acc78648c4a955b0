// Rows as Python sends them -> the lines of a table, side by side or unified. Knows no element.

const CHANGED = new Set(["~", "-", "+"]);

/**
 * One side of a line.
 *
 * @typedef {{number: number, kind: "same"|"went"|"came", spans: Array<[0|1, *]>}} Side
 * @typedef {{sides: [?Side, ?Side], starts: boolean}|{fold: Array}} Line `starts`: the first line of a place
 */

/** @returns {Line[]} the lines, an old and a new side in each; `inPlace`: the row before them had changed already */
export function splitLines(rows, inPlace = false) {
  return lines(rows, inPlace, sideBySide);
}

/** @returns {Line[]} the same with one side in each: of a change first all that went, then all that came */
export function unifiedLines(rows, inPlace = false) {
  return lines(rows, inPlace, oneBelowTheOther);
}

/** Whether the last of these rows is part of a change, which the next page may go on with. */
export function endsInPlace(rows) {
  return rows.length > 0 && CHANGED.has(rows.at(-1)[0]);
}

function lines(rows, inPlace, arrange) {
  const found = [];
  for (let start = 0; start < rows.length; ) {
    const row = rows[start];
    let stop = start + 1;
    if (row[0] === "f") found.push({ fold: row });
    else if (row[0] === "=") found.push({ sides: [same(row[1], row[3]), same(row[2], row[3])], starts: false });
    else {
      while (stop < rows.length && CHANGED.has(rows[stop][0])) stop += 1;
      const pairs = arrange(rows.slice(start, stop));
      const goesOn = inPlace && start === 0;
      found.push(...pairs.map((sides, index) => ({ sides, starts: index === 0 && !goesOn })));
    }
    start = stop;
  }
  return found;
}

/** What went and what came beside each other, never staggered; lines that are a pair stay one. */
function sideBySide(change) {
  const pairs = [];
  let went = [];
  let came = [];
  const flush = () => {
    const count = Math.max(went.length, came.length);
    for (let index = 0; index < count; index += 1) pairs.push([went[index] ?? null, came[index] ?? null]);
    went = [];
    came = [];
  };
  for (const row of change) {
    const [old, fresh] = sides(row);
    if (row[0] === "~" || (row[0] === "-" && came.length)) flush();
    if (old) went.push(old);
    if (fresh) came.push(fresh);
    if (row[0] === "~") flush();
  }
  flush();
  return pairs;
}

function oneBelowTheOther(change) {
  const both = change.map(sides);
  return [
    ...both.filter(([old]) => old).map(([old]) => [old, null]),
    ...both.filter(([, fresh]) => fresh).map(([, fresh]) => [null, fresh]),
  ];
}

function sides(row) {
  if (row[0] === "-") return [{ number: row[1], kind: "went", spans: [[0, row[2]]] }, null];
  if (row[0] === "+") return [null, { number: row[1], kind: "came", spans: [[0, row[2]]] }];
  return [
    { number: row[1], kind: "went", spans: row[3] },
    { number: row[2], kind: "came", spans: row[4] },
  ];
}

function same(number, marked) {
  return { number, kind: "same", spans: [[0, marked]] };
}

/** What a fold becomes once some of its lines are known, from its beginning or from its end. */
export function unfolded([, old, fresh, count], texts, fromEnd = false) {
  const left = count - texts.length;
  const skipped = fromEnd ? left : 0;
  const shown = texts.map((each, index) => ["=", old + skipped + index, fresh + skipped + index, each]);
  if (!left) return shown;
  const rest = fromEnd ? ["f", old, fresh, left] : ["f", old + texts.length, fresh + texts.length, left];
  return fromEnd ? [rest, ...shown] : [...shown, rest];
}
