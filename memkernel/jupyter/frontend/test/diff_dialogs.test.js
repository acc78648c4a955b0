import { expect, test } from "vitest";
import { button, openDiff, press, said, settled, versionRow, view } from "./diff_fixture.js";

const dialog = (root) => root.querySelector("[role=alertdialog]");

async function askRedaction(facts = {}) {
  const opened = openDiff();
  button(opened.root, "Redact…").focus();
  button(opened.root, "Redact…").click();
  const answer = { ordinal: 3, reason: "", sentence: "The text of @3 is erased for ever.", same: "", ...facts };
  await opened.model.answer("redaction", answer);
  return opened;
}

function type(root, value) {
  const input = root.querySelector(".mk-typed");
  input.value = value;
  input.dispatchEvent(new Event("input"));
}

test("an older text becomes a new version, which is then looked at", async () => {
  const { root, model } = openDiff();
  button(root, "Restore…").click();
  expect(document.activeElement.textContent).toBe("Restore");
  button(root, "Restore").click();
  expect(model.asked("restore")[0].params).toEqual({ version: "memver_3", path: null, head: "memver_4" });
  await model.answer("restore", { version: versionRow(5) });
  expect(dialog(root)).toBeNull();
  expect(model.asked("diff").at(-1).params).toMatchObject({ old: "memver_4", new: "memver_5" });
  await model.answer("diff", view(4, 5));
  expect(model.get("index")).toBe(4);
});

test("a head that has moved is told, and asked once more", async () => {
  const { root, model } = openDiff();
  button(root, "Restore…").click();
  button(root, "Restore").click();
  await model.answer("restore", { moved: versionRow(5), sentence: "Meanwhile there is @5 (modified). All the same?" });
  expect(dialog(root).textContent).toContain("Meanwhile there is @5 (modified)");
  button(root, "Restore").click();
  expect(model.asked("restore")[1].params.head).toBe("memver_5");
});

test("Escape leaves all as it is and gives the focus back", async () => {
  const { root, model } = await askRedaction();
  expect(document.activeElement).toBe(root.querySelector(".mk-typed"));
  press(document.activeElement, "Escape");
  expect(dialog(root)).toBeNull();
  expect(document.activeElement).toBe(button(root, "Redact…"));
  expect(model.asked("redact")).toEqual([]);
});

test("redacting wants the version's number typed", async () => {
  const { root, model } = await askRedaction();
  const erase = button(root, "Redact for ever");
  for (const [typed, disabled] of [["", true], ["33", true], ["2", true], ["@3", false], [" 3 ", false]]) {
    type(root, typed);
    expect(erase.disabled).toBe(disabled);
  }
  erase.click();
  expect(model.asked("redact")[0].params).toEqual({ version: "memver_3", confirm: "3", others: false });
});

test("what is redacted is asked for again, and what still holds the text is said", async () => {
  const { root, model } = await askRedaction({ same: "also redact the other 2 versions" });
  expect(dialog(root).textContent).toContain("The text of @3 is erased for ever.");
  expect(root.querySelector("label:has([type=checkbox])").textContent).toBe(" also redact the other 2 versions");
  root.querySelector("[type=checkbox]").checked = true;
  type(root, "3");
  button(root, "Redact for ever").click();
  expect(model.asked("redact")[0].params.others).toBe(true);
  const rows = [versionRow(3, "modified", ["user_ann", "2026-11-30T10:00:00Z"])];
  await model.answer("redact", { versions: rows, kept: "1 live memory holds the text still." });
  expect(root.querySelector(".mk-dialog").textContent).toContain("1 live memory holds the text still.");
  expect(model.asked("diff").at(-1).params).toMatchObject({ new: "memver_3" });
  await model.answer("diff", { ...model.get("view"), rows: [], places: 0, notes: ["@3: redacted"] });
  expect(root.querySelectorAll("th")).toHaveLength(0);
  expect(button(root, "Redact…").disabled).toBe(true);
});

test("a version that cannot be redacted says why, with nothing to press but Cancel", async () => {
  const { root } = await askRedaction({ reason: "@3 is the head. Write a newer version first." });
  expect(dialog(root).textContent).toContain("@3 is the head. Write a newer version first.");
  expect([...dialog(root).querySelectorAll("button")].map((each) => each.textContent)).toEqual(["Cancel"]);
});

test("a refusal stays beside the question", async () => {
  const { root, model } = await askRedaction();
  type(root, "3");
  button(root, "Redact for ever").click();
  await model.refuse("redact", "This store is archived.");
  expect(root.querySelector("[role=alert]").textContent).toContain("Redact: This store is archived.");
  expect(dialog(root)).not.toBeNull();
});

test("letters typed into a question are no keys of the view", async () => {
  const { root, model } = await askRedaction();
  press(root.querySelector(".mk-typed"), "[");
  press(button(root, "Cancel"), "[");
  await settled();
  expect(model.get("index")).toBe(2);
  expect(said(root)).not.toBe("The oldest version");
});
