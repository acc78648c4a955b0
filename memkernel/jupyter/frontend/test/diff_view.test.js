import { expect, test, vi } from "vitest";
import { button, openDiff, press, said, settled, versionRow, view } from "./diff_fixture.js";

test("the first pair is painted from the state, without a request", () => {
  const { root, model } = openDiff();
  expect(root.querySelector("del").textContent).toBe("b");
  expect(root.querySelector("ins").textContent).toBe("c");
  expect([...root.querySelectorAll("th")].map((each) => each.textContent)).toEqual([
    "@2",
    "@3",
  ]);
  expect(model.sent).toEqual([]);
});

test("a step sets the index, asks for the pair, and then for the neighbour beforehand", async () => {
  const { root, model } = openDiff();
  press(root, "[");
  await settled();
  expect(model.asked("diff").at(-1).params).toMatchObject({ old: "memver_1", new: "memver_2" });
  await model.answer("diff", view(1, 2));
  expect(model.get("index")).toBe(1);
  expect(said(root)).toBe("@2, modified by session sesn_9, 2026-11-30 09:21: 1 line added, 1 removed in 1 place");
  expect(model.asked("diff").at(-1).params).toMatchObject({ old: "", new: "memver_1" });
});

test("Home and End go to the ends, where a further step only says so", async () => {
  const { root, model } = openDiff();
  press(root, "End");
  await settled();
  await model.answer("diff", view(3, 4));
  expect(model.get("index")).toBe(3);
  press(root, "]");
  await settled();
  expect([model.get("index"), said(root)]).toEqual([3, "The newest version"]);
  press(root, "Home");
  await settled();
  await model.answer("diff", view("", 1));
  expect(model.get("index")).toBe(0);
  expect(button(root, "Older version ([)").disabled).toBe(true);
});

test("a dragged slider says where it is at once, and asks once it rests", async () => {
  vi.useFakeTimers();
  const { root, model } = openDiff();
  const slider = root.querySelector("input[type=range]");
  for (const value of ["3", "2", "1"]) {
    slider.value = value;
    slider.dispatchEvent(new Event("input"));
  }
  expect(slider.getAttribute("aria-valuetext")).toBe("@1, created by session sesn_9, 2026-11-30 09:21");
  expect(model.sent).toEqual([]);
  await vi.advanceTimersByTimeAsync(100);
  vi.useRealTimers();
  expect(model.asked("diff").map((each) => each.params.new)).toEqual(["memver_1"]);
});

test("any version can be what it is compared with, and it stays so along the steps", async () => {
  const { root, model } = openDiff();
  const select = root.querySelector("select");
  select.value = "0";
  select.dispatchEvent(new Event("change"));
  await settled();
  expect(model.asked("diff").at(-1).params).toMatchObject({ old: "memver_1", new: "memver_3" });
  await model.answer("diff", view(1, 3));
  expect(model.get("base")).toBe(0);
  press(root, "]");
  await settled();
  expect(model.asked("diff").at(-1).params).toMatchObject({ old: "memver_1", new: "memver_4" });
  await model.answer("diff", view(1, 4));
  press(root, "b");
  await settled();
  await model.answer("diff", view(3, 4));
  expect(model.get("base")).toBe("prev");
  press(root, "b");
  await settled();
  expect([model.get("base"), said(root)]).toEqual([2, "Compared with @3"]);
});

test("steps that follow each other fast go on from where the last one goes", async () => {
  const { root, model } = openDiff();
  press(root, "[");
  press(root, "[");
  await settled();
  expect(model.asked("diff").at(-1).params.new).toBe("memver_1");
  await model.answer("diff", view("", 1));
  expect(model.get("index")).toBe(0);
});

test("a step that fails leaves everything at what is shown, until Retry works", async () => {
  const { root, model } = openDiff();
  press(root, "[");
  await settled();
  await model.refuse("diff", "The database does not answer.");
  const shown = () => [model.get("index"), root.querySelector(".mk-facts").textContent];
  expect(shown()).toEqual([2, "@3 of 4"]);
  expect(root.querySelector("input[type=range]").value).toBe("3");
  button(root, "Retry").click();
  await settled();
  await model.answer("diff", view(1, 2));
  expect(shown()).toEqual([1, "@2 of 4"]);
});

test("the focus stays in the box when another pair takes the place of a focused change", async () => {
  const { root, model } = openDiff();
  press(root, "n");
  await settled();
  press(document.activeElement, "[");
  await settled();
  await model.answer("diff", view(1, 2));
  expect(document.activeElement).toBe(root.querySelector(".mk-diff-box"));
});

test("Python may point anywhere: what the page does not know yet is asked for first", async () => {
  const { root, model } = openDiff({ total: 900, versions: [versionRow(899), versionRow(900)], index: 899 });
  model.set("index", 399);
  expect(model.asked("history")[0].params).toEqual({ version: "memver_899", before: 501 });
  const found = Array.from({ length: 200 }, (_, index) => versionRow(301 + index));
  await model.answer("history", { versions: found, total: 900, first: 1 });
  await model.answer("diff", view(399, 400));
  expect(root.querySelector(".mk-facts").textContent).toBe("@400 of 900");
  expect(root.querySelector("th").textContent).toBe("@399");
});

test("pruned versions are no place to go to", async () => {
  const { root, model } = openDiff({ first: 3, versions: [versionRow(3), versionRow(4)], view: view("", 3) });
  press(root, "Home");
  await settled();
  expect([model.get("index"), model.sent]).toEqual([2, []]);
  expect(root.querySelector("input[type=range]").min).toBe("3");
});

test("the head cannot be restored, a redacted or deleted version neither, nor erased again", async () => {
  const redacted = versionRow(1, "created", ["user_ann", "2026-11-30T10:00:00Z"]);
  const { root, model } = openDiff({
    versions: [redacted, versionRow(2, "deleted"), versionRow(3), versionRow(4)],
    index: 3,
  });
  const disabled = () => [button(root, "Restore…").disabled, button(root, "Redact…").disabled];
  expect(disabled()).toEqual([true, false]);
  for (const [index, expected] of [[2, [false, false]], [1, [true, true]], [0, [true, true]]]) {
    model.set("index", index);
    await settled();
    await model.answer("diff", view(index, index + 1));
    expect(disabled()).toEqual(expected);
  }
});

test("read-only: there is no button that changes anything", () => {
  const { root } = openDiff({ readonly: true });
  expect([button(root, "Restore…").hidden, button(root, "Redact…").hidden]).toEqual([true, true]);
});

test("what a person sets is set for the next widget too", () => {
  const { root, model } = openDiff();
  press(root, "u");
  press(root, "w");
  expect([model.get("mode"), model.get("word_level")]).toEqual(["unified", false]);
});

test("new versions come into the slider", () => {
  const { root, model } = openDiff();
  model.set("total", 5);
  model.set("versions", [versionRow(4), versionRow(5)]);
  expect(root.querySelector("input[type=range]").max).toBe("5");
  expect(root.querySelector("option:nth-child(3)").textContent).toMatch(/^@5,/);
});

test("its keys are in titles and in the list", () => {
  const { root } = openDiff();
  press(root, "?");
  const list = [...root.querySelectorAll(".mk-keys kbd")].map((each) => each.textContent);
  expect(list.sort()).toEqual(
    ["[", "]", "Home", "End", "b", "c", "f", "F7", "i", "l", "n", "p", "Shift+F7", "u", "w"].sort(),
  );
});
