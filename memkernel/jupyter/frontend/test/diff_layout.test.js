import { expect, test } from "vitest";
import { endsInPlace, splitLines, unifiedLines, unfolded } from "../src/diff/layout.js";

const shown = (lines) =>
  lines.map((line) => line.fold ?? line.sides.map((side) => side && `${side.kind} ${side.number}`).concat(line.starts));

test("side by side: what went and what came stand beside each other and are never staggered", () => {
  const rows = [["-", 1, "a"], ["-", 2, "b"], ["+", 1, "x"], ["=", 3, 2, "same"]];
  expect(shown(splitLines(rows))).toEqual([
    ["went 1", "came 1", true],
    ["went 2", undefined, false],
    ["same 3", "same 2", undefined],
  ]);
});

test("side by side: a line that changed stays beside what it became", () => {
  const rows = [["-", 1, "a"], ["~", 2, 1, [[1, "b"]], [[1, "x"]]], ["+", 2, "y"]];
  expect(shown(splitLines(rows))).toEqual([
    ["went 1", undefined, true],
    ["went 2", "came 1", false],
    [undefined, "came 2", false],
  ]);
});

test("unified: of a change first all that went, then all that came", () => {
  const rows = [["~", 1, 1, [[1, "a"]], [[1, "x"]]], ["-", 2, "b"], ["~", 3, 2, [[1, "c"]], [[1, "y"]]]];
  expect(shown(unifiedLines(rows)).map(([old, fresh]) => old ?? fresh)).toEqual([
    "went 1",
    "went 2",
    "went 3",
    "came 1",
    "came 2",
  ]);
});

test("every place has exactly one first line, also where a page goes on with it", () => {
  const page = [["+", 1, "a"], ["=", 1, 2, "same"], ["+", 3, "b"], ["f", 2, 4, 9], ["+", 13, "c"]];
  const firsts = (lines) => lines.filter((line) => line.starts).length;
  expect(firsts(splitLines(page))).toBe(3);
  expect(firsts(unifiedLines(page))).toBe(3);
  expect(firsts(unifiedLines(page, true))).toBe(2);
  expect([endsInPlace(page), endsInPlace(page.slice(0, 2)), endsInPlace([])]).toEqual([true, false, false]);
});

test("a fold opens from its beginning, from its end, and whole", () => {
  const fold = ["f", 11, 21, 3];
  expect(unfolded(fold, ["a"])).toEqual([["=", 11, 21, "a"], ["f", 12, 22, 2]]);
  expect(unfolded(fold, ["c"], true)).toEqual([["f", 11, 21, 2], ["=", 13, 23, "c"]]);
  expect(unfolded(fold, ["a", "b", "c"])).toEqual([["=", 11, 21, "a"], ["=", 12, 22, "b"], ["=", 13, 23, "c"]]);
});
