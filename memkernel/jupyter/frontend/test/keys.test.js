import { beforeEach, expect, test, vi } from "vitest";
import { h } from "../src/dom.js";
import { keyboard } from "../src/keys.js";
import { button, press } from "./diff_fixture.js";

let root;
let inner;
let keys;

beforeEach(() => {
  inner = h("div", { tabindex: "0" }, h("input", { type: "text" }), h("input", { type: "range" }));
  root = h("section", { tabindex: "-1" }, inner);
  document.body.replaceChildren(root);
  keys = keyboard(root);
});

test("a key does what its table says, and the host does not see it", () => {
  const step = vi.fn();
  const host = vi.fn();
  document.body.addEventListener("keydown", host);
  keys({ "[": ["Older", step] });
  expect(press(inner, "[").defaultPrevented).toBe(true);
  press(inner, "]");
  expect([step.mock.calls.length, host.mock.calls.length]).toEqual([1, 1]);
});

test("modifiers are part of the name; those of the system are left alone", () => {
  const done = [];
  const note = (what) => [what, () => done.push(what)];
  keys({ s: note("s"), "Ctrl+s": note("save"), "Shift+F7": note("back"), F7: note("on"), "?": note("never") });
  press(inner, "s", { ctrlKey: true });
  press(inner, "F7", { shiftKey: true });
  press(inner, "F7");
  press(inner, "s", { metaKey: true });
  press(inner, "s", { altKey: true });
  expect(done).toEqual(["save", "back", "on"]);
});

test("letters typed into a field are no keys, but Ctrl and Escape are; a slider is no field", () => {
  const done = [];
  keys({ b: ["b", () => done.push("b")], "Ctrl+s": ["s", () => done.push("s")], Escape: ["x", () => done.push("x")] });
  const [field, slider] = inner.children;
  for (const [key, more] of [["b"], ["s", { ctrlKey: true }], ["Escape"]]) press(field, key, more);
  press(slider, "b");
  expect(done).toEqual(["s", "x", "b"]);
});

test("an inner part's keys win, work only within it, and end with it", () => {
  const done = [];
  keys({ n: ["Outer", () => done.push("outer")] });
  const end = keys({ n: ["Inner", () => done.push("inner")] }, inner);
  press(inner, "n");
  press(root, "n");
  end();
  press(inner, "n");
  expect(done).toEqual(["inner", "outer", "outer"]);
});

test("? lists all keys, those that do the same on one line, and gives the focus back", () => {
  const next = ["Next change", () => undefined];
  keys({ n: next, F7: next });
  keys({ ArrowUp: ["Up", () => undefined] }, inner);
  inner.focus();
  press(inner, "?");
  const list = root.querySelector("[role=dialog]");
  expect(list.hidden).toBe(false);
  expect([...list.querySelectorAll("dl > div")].map((line) => line.textContent.trim())).toEqual([
    "n F7 Next change",
    "Up Up",
  ]);
  expect(document.activeElement).toBe(list);
  press(list, "Escape");
  expect([list.hidden, document.activeElement]).toEqual([true, inner]);
  press(inner, "?");
  button(list, "Close").click();
  expect(list.hidden).toBe(true);
});
