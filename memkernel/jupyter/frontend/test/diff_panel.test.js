import { expect, test, vi } from "vitest";
import { h } from "../src/dom.js";
import { button, openPanel, press, said, settled, view } from "./diff_fixture.js";

const TEN = Array.from({ length: 10 }, (_, index) => `line ${index}`);

test("it asks for its pair, and says aloud what differs", async () => {
  const { model, root } = openPanel({ label: "@3, modified" });
  expect(model.asked("diff")[0].params).toEqual({
    old: "memver_2",
    new: "memver_3",
    ignore_whitespace: false,
    context: 3,
    start: 0,
  });
  await model.answer("diff", view(2, 3));
  expect(root.querySelector(".mk-stats").textContent).toBe("+1 −1 in 1 place");
  expect(said(root)).toBe("@3, modified: 1 line added, 1 removed in 1 place");
});

test("only the pair asked for last is painted, whatever comes later", async () => {
  const { model, panel, root } = openPanel({});
  const [first] = model.asked("diff");
  panel.show({ old: "memver_3", new: "memver_4" });
  await model.answer("diff", view(3, 4, { summary: "+9 −1 in 1 place" }));
  model.emit("msg:custom", { id: first.id, result: view(2, 3) });
  await settled();
  expect(root.querySelector(".mk-stats").textContent).toBe("+9 −1 in 1 place");
});

test("a pair that was shown is shown again without asking", async () => {
  const { model, panel } = openPanel({});
  await model.answer("diff", view(2, 3));
  panel.show({ old: "memver_3", new: "memver_4" });
  await model.answer("diff", view(3, 4));
  await panel.show({ old: "memver_2", new: "memver_3" });
  expect(model.asked("diff")).toHaveLength(2);
});

test("a view that was cut to fit the state is painted, and the whole follows", async () => {
  const { model, root } = openPanel({ view: view(2, 3, { cut: true, rows: [["+", 1, "beginning…"]] }) });
  expect(root.querySelector("ins").textContent).toBe("beginning…");
  await model.answer("diff", view(2, 3, { rows: [["+", 1, "beginning and end"]] }));
  expect(root.querySelector("ins").textContent).toBe("beginning and end");
});

test("layout, words and wrap are changed here; folds and white space are asked for", async () => {
  const { model, root } = openPanel({ view: view(2, 3) });
  const panel = root.querySelector(".mk-diff");
  expect(root.querySelector(".mk-split")).not.toBeNull();
  for (const key of ["u", "w", "l"]) press(panel, key);
  expect(root.querySelector(".mk-unified")).not.toBeNull();
  expect([panel.classList.contains("mk-words"), panel.classList.contains("mk-wrapped")]).toEqual([false, false]);
  expect(model.sent).toEqual([]);
  press(panel, "f");
  expect(model.asked("diff").at(-1).params.context).toBeNull();
  press(panel, "i");
  expect(model.asked("diff").at(-1).params.ignore_whitespace).toBe(true);
});

test("the buttons say what is on", () => {
  const { root } = openPanel({ view: view(2, 3) });
  const pressed = (name) => button(root, name).getAttribute("aria-pressed");
  expect(["Auto", "Split", "Unified", "Words", "Ignore white space"].map(pressed)).toEqual([
    "true",
    "false",
    "false",
    "true",
    "false",
  ]);
  button(root, "Unified").click();
  expect(["Auto", "Unified"].map(pressed)).toEqual(["false", "true"]);
});

test("lines of a fold come in place, and the focus stays near", async () => {
  const { model, root } = openPanel({ view: view(2, 3) });
  button(root, "↑ 10").click();
  expect(model.asked("lines")[0].params).toEqual({ new: "memver_3", start: 33, count: 10 });
  await model.answer("lines", { rows: TEN });
  const numbers = [...root.querySelectorAll("tbody tr")].map((line) => line.querySelector("[data-n]")?.dataset.n);
  expect(numbers).toEqual(["1", "2", undefined, ...TEN.map((_, index) => String(33 + index))]);
  expect(document.activeElement.textContent).toBe("↓ 10");
  button(root, "⋯ 30 unchanged lines").click();
  expect(model.asked("lines").at(-1).params).toEqual({ new: "memver_3", start: 3, count: 30 });
});

test("more rows than a page has are shown on request, and a change goes on over the page's end", async () => {
  const first = view(2, 3, { rows: [["+", 1, "a"]], next: 1, total: 3, places: 2, added: 3 });
  const { model, root } = openPanel({ view: first });
  button(root, "Show next rows, 2 are left").click();
  expect(model.asked("diff")[0].params.start).toBe(1);
  await model.answer("diff", view(2, 3, { start: 1, rows: [["+", 2, "b"], ["=", 1, 3, "c"]], next: null }));
  expect(root.querySelectorAll("tbody tr")).toHaveLength(3);
  expect(root.querySelectorAll("[data-place]")).toHaveLength(1);
  expect(root.textContent).not.toContain("Show next");
});

test("the next change is focused and counted, with further rows where it lies there", async () => {
  const rows = [["+", 1, "a"], ["=", 1, 2, "same"], ["-", 2, "b"]];
  const { model, root } = openPanel({ view: view(2, 3, { rows, next: 3, total: 5, places: 3 }) });
  const panel = root.querySelector(".mk-diff");
  press(panel, "n");
  await settled();
  expect([said(root), document.activeElement.textContent]).toEqual(["Change 1 of 3", "a"]);
  press(panel, "F7");
  press(panel, "n");
  await settled();
  await model.answer("diff", view(2, 3, { start: 3, rows: [["=", 3, 3, "same"], ["+", 4, "c"]], places: 3 }));
  expect(said(root)).toBe("Change 3 of 3");
  press(panel, "F7", { shiftKey: true });
  await settled();
  expect(said(root)).toBe("Change 2 of 3");
});

test("without a text its reason is shown", () => {
  const redacted = { rows: [], summary: "", said: "", notes: ["@3: redacted by user_ann"] };
  const { root } = openPanel({ view: view(2, 3, redacted) });
  expect(root.querySelector(".mk-dialog").textContent).toBe("@3: redacted by user_ann");
  expect(root.querySelector(".mk-empty").textContent).toBe("There is no text to compare");
  expect(root.querySelector("table")).toBeNull();
  expect([root.querySelector(".mk-stats").textContent, said(root)]).toEqual(["", ""]);
});

test("which call made it is no warning, and leads to its run where that is in the page", () => {
  const made = ["@3 was made by run_1, in its call toolu_1", "run_1", "toolu_1"];
  const { root: alone } = openPanel({ view: view(2, 3, { made }) });
  expect(alone.querySelector(".mk-dialog")).toBeNull();
  expect(alone.querySelector(".mk-part.mk-faint").textContent).toBe(made[0]);
  expect(alone.querySelector(".mk-part button")).toBeNull();
  const call = h("div", { "data-call": "toolu_1" }, h("details", h("summary", { tabindex: "0" }, "memory create")));
  const run = h("section", { "data-run": "run_1", tabindex: "-1" }, call);
  document.body.append(run);
  const { root } = openPanel({ view: view(2, 3, { made }) });
  button(root, made[0]).click();
  expect(document.activeElement.textContent).toBe("memory create");
  call.remove(); // it is among the earlier ones
  button(root, made[0]).click();
  expect(document.activeElement).toBe(run);
  run.remove();
});

test("the patch goes to the clipboard; where there is none it is shown, selected", async () => {
  const { model, root } = openPanel({ view: view(2, 3) });
  const clipboard = vi.spyOn(navigator.clipboard, "writeText");
  clipboard.mockResolvedValueOnce().mockRejectedValueOnce(new Error("not allowed"));
  button(root, "Copy patch").click();
  await model.answer("patch", { text: "--- a\n+++ b\n" });
  expect(clipboard).toHaveBeenCalledWith("--- a\n+++ b\n");
  expect(said(root)).toBe("The patch is on the clipboard");
  button(root, "Copy patch").click();
  await model.answer("patch", { text: "--- a\n+++ b\n" });
  expect(root.querySelector("textarea").value).toBe("--- a\n+++ b\n");
});

test("a failure is one line with Retry, which goes away once it works", async () => {
  const { model, root } = openPanel({});
  await model.refuse("diff", "The database does not answer.", "See %memory status.");
  const line = root.querySelector("[role=alert]");
  expect(line.textContent).toContain("Compare: The database does not answer. See %memory status.");
  button(line, "Retry").click();
  await model.answer("diff", view(2, 3));
  expect(root.querySelector("[role=alert]")).toBeNull();
  expect(root.querySelector("ins").textContent).toBe("c");
});

test("a closed panel listens to nothing any more", () => {
  const closed = vi.fn();
  const { panel, root } = openPanel({ view: view(2, 3), onClose: closed });
  button(root, "Close the diff").click();
  expect(closed).toHaveBeenCalled();
  const { element } = panel;
  panel.dispose();
  press(element, "u");
  expect(root.contains(element)).toBe(false);
  expect(element.querySelector(".mk-split")).not.toBeNull();
});
