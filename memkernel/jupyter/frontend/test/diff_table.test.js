import { expect, test, vi } from "vitest";
import { lineElements, table } from "../src/diff/table.js";

const ROWS = [
  ["=", 1, 1, "same"],
  ["~", 2, 2, [[0, "a "], [1, "b"]], [[0, "a "], [1, "c"]]],
  ["-", 3, "<b>gone</b>"],
  ["f", 4, 3, 25],
];

function drawn(layout, rows = ROWS, expand = () => {}) {
  const found = table(layout, ["@1", "@2"]);
  const body = document.createElement("tbody");
  body.append(...lineElements(rows, { layout, expand }));
  found.append(body);
  return found;
}

test("what went is in del, what came in ins, whole lines or the words of them", () => {
  for (const layout of ["split", "unified"]) {
    const found = drawn(layout);
    expect([...found.querySelectorAll("del")].map((each) => each.textContent)).toEqual(["b", "<b>gone</b>"]);
    expect([...found.querySelectorAll("ins")].map((each) => each.textContent)).toEqual(["c"]);
    expect([...found.querySelectorAll(".mk-word")].map((each) => each.textContent)).toEqual(["b", "c"]);
  }
});

test("a stored text is text: nothing of it becomes an element but the marks", () => {
  const found = drawn("unified", [["+", 1, ["<img src=x>", ["⟨ESC⟩", "U+001B"], "<script>"]]]);
  expect(found.querySelector("img, script")).toBeNull();
  expect(found.querySelector("ins").textContent).toBe("<img src=x>⟨ESC⟩<script>");
  expect(found.querySelector(".mk-mark").title).toBe("U+001B");
});

test("it is a table with heads and equal columns in every row", () => {
  for (const [layout, columns] of [["split", 4], ["unified", 3]]) {
    const found = drawn(layout);
    const widths = [...found.querySelectorAll("tr")].map((tr) =>
      [...tr.children].reduce((sum, cell) => sum + Number(cell.getAttribute("colspan") ?? 1), 0),
    );
    expect(new Set(widths)).toEqual(new Set([columns]));
  }
  expect([...drawn("unified").querySelectorAll("th div")].map((each) => each.textContent)).toEqual(["− @1", "+ @2"]);
});

test("a number is painted from its attribute, so that it is neither selected nor found", () => {
  const found = drawn("unified");
  expect([...found.querySelectorAll("tr")].at(2).querySelector("[data-n]").dataset.n).toBe("2");
  expect(found.querySelector("td.mk-n").textContent).toBe("");
});

test("a fold offers ten lines from either end, and all; a short one only all", () => {
  const expand = vi.fn();
  const [long] = lineElements([["f", 4, 3, 25]], { layout: "unified", expand });
  const [down, all, up] = long.querySelectorAll("button");
  for (const each of [down, all, up]) each.click();
  expect(expand.mock.calls.map((call) => call.slice(2))).toEqual([[10, false], [25, false], [10, true]]);
  const [short] = lineElements([["f", 4, 3, 1]], { layout: "unified", expand });
  expect([...short.querySelectorAll("button")].map((each) => each.textContent)).toEqual(["⋯ 1 unchanged line"]);
});

test("of a huge fold at most 2,000 lines are shown at a time", () => {
  const expand = vi.fn();
  const [fold] = lineElements([["f", 4, 3, 49_000]], { layout: "split", expand });
  fold.querySelectorAll("button")[1].click();
  expect(expand.mock.calls[0][2]).toBe(2_000);
});
