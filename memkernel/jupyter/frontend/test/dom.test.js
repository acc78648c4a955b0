import { expect, test, vi } from "vitest";
import { h, plain, replace, text } from "../src/dom.js";

test("an element is named with its classes, its attributes may be left out", () => {
  const element = h("td.mk-cell.mk-went", "a", ["b", null, h("i", "c")], undefined);
  expect(element.outerHTML).toBe('<td class="mk-cell mk-went">ab<i>c</i></td>');
});

test("attributes: true is an empty one, false, null and undefined are none, 0 is a value", () => {
  const props = { hidden: true, disabled: false, title: null, lang: undefined, "data-n": 0 };
  expect(h("b", props).outerHTML).toBe('<b hidden="" data-n="0"></b>');
});

test("what begins with on is a listener, never an attribute", () => {
  const clicked = vi.fn();
  const element = h("button", { onclick: clicked });
  element.click();
  expect(clicked).toHaveBeenCalledTimes(1);
  expect(element.attributes).toHaveLength(0);
});

test("text is text, whatever stands in it", () => {
  const stored = '<img src=x onerror="alert(1)">&amp;';
  const element = replace(h("p", "before"), stored, null);
  expect(element.childElementCount).toBe(0);
  expect(element.textContent).toBe(stored);
});

test("a marked text shows its marks with what they stand for, and reads plainly in an attribute", () => {
  const marked = ["a", ["⟨ESC⟩", "U+001B CONTROL CHARACTER"], "<b>"];
  const element = h("p", text(marked));
  expect(element.querySelector("b.mk-mark").title).toBe("U+001B CONTROL CHARACTER");
  expect(element.textContent).toBe("a⟨ESC⟩<b>");
  expect([plain(marked), plain("plain")]).toEqual(["a⟨ESC⟩<b>", "plain"]);
});
