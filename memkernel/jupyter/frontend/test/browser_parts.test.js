import { afterEach, expect, test } from "vitest";
import { editable } from "../src/browser/lines.js";
import { above, filtered, rowsOf, treeOf } from "../src/browser/paths.js";
import { windowed } from "../src/browser/windowed.js";
import { h } from "../src/dom.js";

const memories = (...keys) => keys.map((key) => ({ key, path: key }));
const shown = (rows) => rows.map(({ node, level, place, siblings }) => [node.name, level, place, siblings]);

test("memories of one directory stand together, though others come between them in path order", () => {
  const root = treeOf(memories("/a/x.md", "/a-b.md", "/a/y.md"));
  expect(shown(rowsOf(root, new Set(["/a"])))).toEqual([
    ["a", 1, 1, 2],
    ["x.md", 2, 1, 2],
    ["y.md", 2, 2, 2],
    ["a-b.md", 1, 2, 2],
  ]);
});

test("a directory counts all memories below it, and shut ones show nothing of it", () => {
  const root = treeOf(memories("/a/b/c.md", "/a/b/d.md", "/a/e.md"));
  expect(root.count).toBe(3);
  expect(root.children[0].count).toBe(3);
  expect(root.children[0].children[0].count).toBe(2);
  expect(shown(rowsOf(root, new Set()))).toEqual([["a", 1, 1, 1]]);
});

test("names of JavaScript's own objects are names of directories like others", () => {
  const root = treeOf(memories("/__proto__/constructor.md", "/toString/a.md"));
  expect(root.children.map(({ name }) => name)).toEqual(["__proto__", "toString"]);
});

test("a path with marks is shown whole, with them", () => {
  const path = ["/a", ["␣", "U+00A0 NO-BREAK SPACE"], ".md"];
  expect(treeOf([{ key: "/a\u00a0.md", path }]).children[0].name).toBe(path);
});

test("the directories above a path", () => {
  expect(above("/a/b/c.md")).toEqual(["/a", "/a/b"]);
  expect(above("/c.md")).toEqual([]);
});

test("a filter's words may stand in any order and case", () => {
  expect(shown(filtered(memories("/Plan/one.md", "/two.md"), "ONE plan"))).toEqual([["/Plan/one.md", 1, 1, 1]]);
});

test.each(["", "a\nb", "a\r\nb\r\n", "\r\n", "a"])("%j comes back from a textarea as it was", (text) => {
  const area = h("textarea");
  const { shown: value, restored } = editable(text);
  area.value = value;
  expect(restored(area.value)).toBe(text);
});

test.each(["a\r", "a\rb\r\n", "a\r\nb\n", "\r\r\n", "\n\r"])("%j would not come back, so it is not edited", (text) => {
  expect(editable(text)).toBe(null);
});

let list = null;

afterEach(() => list?.dispose());

function listed(count) {
  const seen = { looked: [], opened: [] };
  list = windowed(20, "listbox", "Numbers", {
    draw: (item) => h("div", { role: "option" }, String(item)),
    look: (item) => seen.looked.push(item),
    open: (item, how) => seen.opened.push([item, how]),
    key: () => false,
  });
  document.body.replaceChildren(list.element);
  list.set(Array.from({ length: count }, (_, index) => index), () => false);
  return seen;
}

const press = (key, more = {}) =>
  list.element.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true, bubbles: true, ...more }));

test("arrows, pages and ends move in a list, and stop at its ends", () => {
  const { looked } = listed(100);
  for (const key of ["ArrowDown", "ArrowDown", "PageDown", "End", "ArrowDown", "PageUp", "Home", "ArrowUp"]) press(key);
  expect(looked).toEqual([0, 1, 18, 99, 99, 82, 0, 0]);
});

test("the active row is in the page and named by the list", () => {
  listed(1_000);
  press("End");
  const named = document.getElementById(list.element.getAttribute("aria-activedescendant"));
  expect(named.textContent).toBe("999");
  expect(list.element.querySelectorAll("[role=option]").length).toBeLessThan(40);
});

test("Enter and a click open a row; keys with Ctrl are not the list's", () => {
  const { looked, opened } = listed(10);
  press("End", { ctrlKey: true });
  expect(looked).toEqual([]);
  press("Home");
  press("Enter");
  list.element.querySelectorAll("[role=option]")[3].click();
  expect(opened).toEqual([[0, "key"], [3, "click"]]);
});

test("an empty list takes no key and fails on none", () => {
  const { looked, opened } = listed(0);
  expect(press("End")).toBe(true);
  expect(press("Enter")).toBe(true);
  expect([looked, opened]).toEqual([[], []]);
});
