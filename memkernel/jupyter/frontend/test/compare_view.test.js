import { afterEach, expect, test, vi } from "vitest";
import { storeDiff } from "../src/compare/view.js";
import { openFrame } from "../src/frame.js";
import { view as diffView } from "./diff_fixture.js";
import { fakeModel } from "./model.js";

const AT = "2026-11-30T09:21:05Z";
let frame = null;

afterEach(() => {
  frame?.close();
  vi.useRealTimers();
});

const change = (path, kind = "modified", lines = "+1 −1", note = "") => {
  const sign = { created: "+", modified: "~", renamed: "→", deleted: "−" }[kind];
  return [`new${path}`, sign, kind, path, lines, note, "user_ann", AT, `old${path}`, `new${path}`];
};

const seen = (rows, more = {}) => ({
  ...{ old: [4, "change 4, 2026-11-30 09:00 UTC"], new: [9, "change 9, 2026-11-30 09:21 UTC"], first: 0, head: 12 },
  ...{ total: rows.length, matching: rows.length, summary: "1 modified", rows, next: null },
  ...more,
});

function compare(view = seen([change("/a.md")]), more = {}) {
  const traits = { store_name: "Team notes", old: 4, new: 9, query: "", selected: "", as_of: AT, view, ...more };
  const model = fakeModel(traits);
  document.body.replaceChildren();
  frame = openFrame({ model, el: document.body });
  storeDiff(frame);
  return { model, root: frame.root, $: (selector) => frame.root.querySelector(selector) };
}

const options = (root) => [...root.querySelectorAll("[role=option]")];
const press = (element, key) =>
  element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const later = (ms = 0) => new Promise((resolve) => setTimeout(resolve, ms));

test("the first paint needs no answer: points, summary and memories are in the state", () => {
  const { model, root, $ } = compare(seen([change("/a.md"), change("/b → /c", "renamed"), change("/d", "deleted")]));
  expect(model.sent).toEqual([]);
  expect(options(root).map((row) => row.querySelector(".mk-name").textContent)).toEqual(["/a.md", "/b → /c", "/d"]);
  expect(options(root)[2].textContent).toContain("deleted · user_ann · 2026-11-30 09:21 UTC");
  expect($(".mk-stats").textContent).toBe("1 modified");
  const [from, to] = root.querySelectorAll("input[type=range]");
  expect([from.value, from.max, from.getAttribute("aria-valuetext")]).toEqual([
    ...["4", "12", "change 4, 2026-11-30 09:00 UTC"],
  ]);
  expect(to.getAttribute("aria-label")).toBe("To: a change of the store");
});

test("a stored path is never markup, and what cannot be seen has its mark", () => {
  const { root } = compare(seen([change(["/<b>", ["⟨RLO⟩", "U+202E"], ".md"])]));
  expect(options(root)[0].querySelector(".mk-name").textContent).toBe("/<b>⟨RLO⟩.md");
  expect(options(root)[0].querySelector(".mk-name b").title).toBe("U+202E");
});

test("nothing differs", () => {
  const { root, $ } = compare(seen([], { summary: "no difference" }));
  expect(options(root)).toEqual([]);
  expect($(".mk-empty").hidden).toBe(false);
  expect($("[role=listbox]").hidden).toBe(true);
});

test("many steps are one question, and the answer is the state", async () => {
  vi.useFakeTimers();
  const { model, root } = compare();
  for (let step = 0; step < 3; step += 1) press(root, "[");
  press(root, "]");
  vi.runAllTimers();
  expect(model.asked("look").map(({ params }) => params)).toEqual([{ new: 7 }]);
  const [, to] = root.querySelectorAll("input[type=range]");
  expect(to.getAttribute("aria-valuetext")).toBe("change 7");
  vi.useRealTimers();
  model.set("view", seen([change("/z.md")], { new: [7, "change 7, then"] }));
  expect(options(root)[0].textContent).toContain("/z.md");
  await model.answer("look", null);
  expect(to.getAttribute("aria-valuetext")).toBe("change 7, then");
});

test("an answer takes no step back that was made meanwhile", async () => {
  vi.useFakeTimers();
  const { model, root } = compare();
  const [, to] = root.querySelectorAll("input[type=range]");
  press(root, "[");
  vi.runAllTimers();
  press(root, "[");
  model.set("view", seen([change("/z.md")], { new: [8, "change 8, then"] }));
  model.emit("msg:custom", { id: model.asked("look")[0].id, result: null });
  await Promise.resolve();
  expect(to.value).toBe("7");
  vi.runAllTimers();
  expect(model.asked("look").at(-1).params).toEqual({ new: 7 });
});

test("the same points again are told in full", async () => {
  vi.useFakeTimers();
  const { model, root } = compare();
  press(root, "[");
  press(root, "]");
  vi.runAllTimers();
  vi.useRealTimers();
  const [, to] = root.querySelectorAll("input[type=range]");
  expect(to.getAttribute("aria-valuetext")).toBe("change 9, 2026-11-30 09:21 UTC");
  await model.answer("look", null);
  expect(to.getAttribute("aria-valuetext")).toBe("change 9, 2026-11-30 09:21 UTC");
});

test("a step stops at the ends", () => {
  vi.useFakeTimers();
  const { model, root } = compare(seen([change("/a.md")], { first: 4, head: 9 }));
  press(root, ",");
  press(root, "]");
  vi.runAllTimers();
  expect(model.asked("look")).toEqual([]);
  expect(root.querySelector("[role=status]").textContent).toBe("To: the newest change");
  press(root, ".");
  vi.runAllTimers();
  expect(model.asked("look").at(-1).params).toEqual({ old: 5 });
});

test("a time is typed, and one that is none is told in one line, with the controls as they were", async () => {
  const { model, root, $ } = compare();
  const [typed] = root.querySelectorAll("input[type=text]");
  typed.value = "yesterday";
  press(typed, "Enter");
  typed.dispatchEvent(new Event("change"));
  expect(model.asked("look")).toHaveLength(1);
  expect(model.asked("look").at(-1).params).toEqual({ old: "yesterday" });
  await model.refuse("look", "'yesterday' names no point", "A point is @41");
  expect($("[role=alert]").textContent).toContain("Compare: 'yesterday' names no point. A point is @41");
  expect(typed.value).toBe("@4");
});

test("the filter asks once, after the typing", () => {
  vi.useFakeTimers();
  const { model, root, $ } = compare();
  press(root, "/");
  const filter = $("input[type=search]");
  expect(document.activeElement).toBe(filter);
  for (const value of ["d", "di", "dir"]) {
    filter.value = value;
    filter.dispatchEvent(new Event("input"));
  }
  vi.runAllTimers();
  expect(model.asked("look").map(({ params }) => params)).toEqual([{ query: "dir" }]);
});

test("a chosen memory's diff is below; another one takes its place; Escape closes it", async () => {
  const { model, root, $ } = compare(seen([change("/a.md"), change("/b.md")]));
  options(root)[0].click();
  expect(model.get("selected")).toBe("new/a.md");
  expect(model.asked("diff").at(-1).params).toMatchObject({ old: "old/a.md", new: "new/a.md" });
  await model.answer("diff", diffView(1, 2));
  expect($(".mk-table")).not.toBeNull();
  expect(options(root)[0].getAttribute("aria-selected")).toBe("true");
  const box = $("[role=listbox]");
  press(box, "ArrowDown");
  await later(200);
  expect(model.get("selected")).toBe("new/b.md");
  expect(root.querySelectorAll(".mk-diff")).toHaveLength(1);
  press(box, "Escape");
  expect(model.get("selected")).toBe("");
  expect($(".mk-diff")).toBeNull();
});

test("the same memory between other points is compared anew", async () => {
  const { model } = compare(seen([change("/a.md")]), { selected: "new/a.md" });
  expect(model.asked("diff")).toHaveLength(1);
  const other = change("/a.md");
  other[8] = "older";
  model.set("view", seen([other]));
  expect(model.asked("diff").at(-1).params).toMatchObject({ old: "older", new: "new/a.md" });
  model.set("view", seen([other]));
  expect(model.asked("diff")).toHaveLength(2);
});

test("rows beyond the first ones are asked for, and numbers that the state has not", async () => {
  const { model, root } = compare(seen([change("/a.md", "modified", null)], { matching: 3, next: 1 }));
  expect(model.asked("more").at(-1).params).toEqual({ start: 1 });
  await model.answer("more", {
    rows: [change("/b.md", "modified", null), change("/c.md", "created", "", "@1 redacted")],
    next: null,
  });
  expect(options(root)).toHaveLength(3);
  expect(options(root)[2].textContent).toContain("@1 redacted");
  expect(model.asked("counts").at(-1).params).toEqual({ changes: ["new/a.md", "new/b.md"] });
  await model.answer("counts", { "new/a.md": "+7 −0" });
  expect(options(root)[0].textContent).toContain("+7 −0");
  expect(model.asked("counts").at(-1).params).toEqual({ changes: ["new/b.md"] });
  await model.answer("counts", {});
  expect(model.asked("counts")).toHaveLength(2);
});

test("a closed view listens to nothing", () => {
  const { model } = compare();
  frame.close();
  expect(model.listening()).toBe(0);
});
