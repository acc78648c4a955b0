import { afterEach, expect, test, vi } from "vitest";
import { storeBrowser } from "../src/browser/view.js";
import { openFrame } from "../src/frame.js";
import { fakeModel } from "./model.js";

const AT = "2026-11-30T09:21:00Z";
let frame = null;

afterEach(() => {
  frame?.close();
  vi.useRealTimers();
});

const memory = (path, ...more) => [path, 812, AT, `memver_${path}`, ...more];
const version = (id, ordinal, path = "/a.md", operation = "modified") => [
  ...[id, ordinal, operation, path, "user_actor", "user_ann", AT, 812, "9f2ca1b0", null, null],
];
const content = (ordinal, text, more = {}) => ({
  ...{ path: "/a.md", version: version(`v${ordinal}`, ordinal), text, note: "", live: true, head: true, sha256: "sha" },
  ...{ nodes: [["p", [["", text]]]], cut: false, facts: `@${ordinal}`, state: "", restorable: false },
  ...more,
});

/** A browser of a store with these memories; what the state does not hold is as Python's defaults. */
function browse(state = {}) {
  const memories = (state.memories ?? [["/a.md"], ["/b/c.md"]]).map((facts) => memory(...facts));
  const model = fakeModel({
    ...{ kind: "browser", store: "memstore_1", store_name: "Team notes", stores: [], prefix: "/", as_of: AT },
    ...{ versions: [version("v2", 2), version("v1", 1, "/a.md", "created")], versions_total: 2 },
    ...{ selected: "", selected_version: "", base_version: "", content: {}, total: memories.length },
    ...{ readonly: false, reason: "" },
    ...{ tab: "", view: "preview", query: "", height: 420, show_deleted: false },
    ...state,
    memories,
  });
  document.body.replaceChildren();
  frame = openFrame({ model, el: document.body });
  storeBrowser(frame);
  return { model, root: frame.root, $: (selector) => frame.root.querySelector(selector) };
}

const later = (ms = 0) => new Promise((resolve) => setTimeout(resolve, ms));
const rows = (root) => [...root.querySelectorAll("[role=treeitem]")];
const names = (root) => rows(root).map((row) => row.querySelector(".mk-name").textContent);
const press = (element, key, more = {}) =>
  element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
const button = (root, label) => [...root.querySelectorAll("button")].find((each) => each.textContent === label);
const row = (root, name) => rows(root).find((each) => each.querySelector(".mk-name").textContent === name);

async function opened(state, text = "# Units\n\nSI\n") {
  const page = browse(state);
  row(page.root, "a.md").click();
  await page.model.answer("read", content(2, text));
  return page;
}

test("the tree is painted from the state, in path order, without a request", () => {
  const { model, root } = browse();
  expect(names(root)).toEqual(["a.md", "b", "c.md"]);
  expect(model.asked("memories_after")).toEqual([]);
  expect(model.asked("read")).toEqual([]);
});

test("each row says its level, its place among its siblings, and whether it is open", () => {
  const { root } = browse();
  const facts = ["level", "posinset", "setsize", "expanded"];
  const said = rows(root).map((each) => facts.map((fact) => each.getAttribute(`aria-${fact}`)));
  expect(said).toEqual([["1", "1", "2", null], ["1", "2", "2", "true"], ["2", "1", "1", null]]);
});

test("the arrows walk the tree: left shuts and goes to the directory, right opens and goes in", () => {
  const { root, $ } = browse();
  const tree = $("[role=tree]");
  const at = () => root.querySelector(`#${tree.getAttribute("aria-activedescendant")} .mk-name`).textContent;
  press(tree, "Home");
  expect(at()).toBe("a.md");
  press(tree, "ArrowDown");
  press(tree, "ArrowRight");
  expect(at()).toBe("c.md");
  press(tree, "ArrowLeft");
  expect(at()).toBe("b");
  press(tree, "ArrowLeft");
  expect(names(root)).toEqual(["a.md", "b"]);
  press(tree, "Home");
  expect(at()).toBe("a.md");
});

test("of 2,000 memories only the rows on screen are in the page", async () => {
  const memories = Array.from({ length: 120 }, (_, index) => [`/m${String(index).padStart(4, "0")}.md`]);
  const { model, root } = browse({ memories, total: 2_000 });
  expect(rows(root).length).toBeLessThan(40);
  const rest = Array.from({ length: 1_880 }, (_, index) => memory(`/m${String(index + 120).padStart(4, "0")}.md`));
  await model.answer("memories_after", { memories: rest.slice(0, 1_000), next: "/m1119.md", total: 2_000 });
  expect(model.asked("memories_after").map((message) => message.params.after)).toEqual(["/m0119.md", "/m1119.md"]);
  await model.answer("memories_after", { memories: rest.slice(1_000), next: null, total: 2_000 });
  expect(rows(root)[0].getAttribute("aria-setsize")).toBe("2000");
  expect(root.querySelectorAll(".mk-memories *").length).toBeLessThan(110);
});

test("a filter leaves the memories whose paths hold all its words, as it is typed", () => {
  const { model, root, $ } = browse({ memories: [["/a/plan.md"], ["/b/plan.md"], ["/b/units.md"]] });
  $("input[type=search]").value = "PLAN b";
  $("input[type=search]").dispatchEvent(new Event("input"));
  expect(names(root)).toEqual(["/b/plan.md"]);
  expect($(".mk-bar .mk-faint").textContent).toBe("1 of 3 memories");
  expect(model.sent.filter(({ method }) => method !== "changes")).toEqual([]);
});

test("a path is sent back as it is stored, whatever its marks show", () => {
  const { model, root } = browse({ memories: [[["/a", ["␣", "U+00A0 NO-BREAK SPACE"], "b.md"], "/a\u00a0b.md"]] });
  rows(root)[0].click();
  expect(model.asked("read")[0].params.path).toBe("/a\u00a0b.md");
  expect(rows(root)[0].querySelector("b.mk-mark").textContent).toBe("␣");
});

test("a selected memory is shown rendered, with its place is known to Python", async () => {
  const { model, $ } = await opened();
  expect($(".mk-preview p").textContent).toBe("# Units\n\nSI\n");
  expect(model.get("selected")).toBe("/a.md");
  button($(".mk-content"), "Source").click();
  expect($(".mk-source").textContent).toBe("# Units\n\nSI\n");
});

test("a version without a text shows the reason in its place", async () => {
  const { model, $ } = browse();
  $("[role=option]").click();
  await model.answer("read", content(2, null, { note: "@2 was redacted by person user_ann.", head: false }));
  expect($(".mk-text .mk-empty").textContent).toBe("@2 was redacted by person user_ann.");
});

test("an answer that comes late is not shown in place of what was selected since", async () => {
  const { model, root, $ } = browse();
  row(root, "a.md").click();
  const late = model.asked("read")[0].id;
  row(root, "c.md").click();
  await model.answer("read", content(1, "newer", { path: "/b/c.md", version: version("v9", 1, "/b/c.md") }));
  model.emit("msg:custom", { id: late, result: content(2, "older") });
  await later();
  expect($(".mk-text").textContent).toBe("newer");
});

test("c marks a version as the base, Enter compares another one with it", async () => {
  const { model, $ } = browse();
  const list = $("[role=listbox]");
  press(list, "End");
  press(list, "c");
  expect(model.get("base_version")).toBe("v1");
  expect($(".mk-history .mk-tag").textContent).toBe("base");
  press(list, "Home");
  press(list, "Enter");
  expect(model.asked("diff")[0].params).toMatchObject({ old: "v1", new: "v2" });
  expect(model.asked("compared")[0].params).toEqual({ old: "v1", new: "v2" });
});

test("without a base a version is compared with the one before", () => {
  const { model, $ } = browse();
  press($("[role=listbox]"), "Home");
  press($("[role=listbox]"), "d");
  expect(model.asked("diff").at(-1).params).toMatchObject({ old: "prev", new: "v2" });
});

test("a history of 1,000 versions asks for the next ones when its end comes near", async () => {
  const { model, root, $ } = browse({ versions: [version("v1000", 1_000)], versions_total: 1_000 });
  expect(model.asked("timeline").at(-1).params).toEqual({ path: "", before: "v1000" });
  const page = Array.from({ length: 200 }, (_, index) => version(`v${999 - index}`, 999 - index));
  await model.answer("timeline", { versions: page, next: "v800", total: 1_000 });
  expect(root.querySelectorAll("[role=option]").length).toBeLessThan(30);
  expect($("[role=option]").getAttribute("aria-setsize")).toBe("1000");
  press($("[role=listbox]"), "End");
  expect(model.asked("timeline").at(-1).params).toEqual({ path: "", before: "v800" });
});

async function editing(text, state) {
  const page = await opened(state, text);
  button(page.$(".mk-content"), "Edit").click();
  await page.model.answer("edit", { text, sha256: "sha-had", version: version("v2", 2) });
  const area = page.$("textarea");
  const type = (value) => {
    area.value = value;
    area.dispatchEvent(new Event("input"));
  };
  return { ...page, area, type };
}

test("an edit is saved over the content that it was made from, and no other", async () => {
  const { model, area, type, $ } = await editing("SI\n");
  type("SI, always\n");
  press(area, "s", { ctrlKey: true });
  expect(model.asked("save")[0].params).toEqual({ path: "/a.md", text: "SI, always\n", expect: "sha-had" });
  await model.answer("save", { version: version("v3", 3) });
  expect($("textarea").parentElement.hidden).toBe(true);
});

test("a text with carriage returns at all line ends keeps them through an edit", async () => {
  const { model, area, type } = await editing("a\r\nb\r\n");
  expect(area.value).toBe("a\nb\n");
  type("a\nb\nc\n");
  press(area, "s", { ctrlKey: true });
  expect(model.asked("save")[0].params.text).toBe("a\r\nb\r\nc\r\n");
});

test.each([["mixed line ends", "a\r\nb\n"], ["a carriage return alone", "a\rb\n"]])(
  "a text with %s is refused for editing, with the reason",
  async (_, text) => {
    const { $ } = await editing(text);
    expect($("textarea").parentElement.hidden).toBe(true);
    expect($("[role=alertdialog]").textContent).toContain("carriage returns");
  },
);

async function conflicting(version_) {
  const page = await editing("SI\n");
  page.type("mine\n");
  press(page.area, "s", { ctrlKey: true });
  const sha256 = version_ ? "sha-theirs" : "";
  const words = "/a.md was changed while you edited it, by person user_ann.";
  await page.model.answer("save", { conflict: { version: version_, text: "theirs\n", sha256, words } });
  return page;
}

test("a conflict says who changed it and leaves three ways; mine is saved over theirs", async () => {
  const { model, $ } = await conflicting(version("v3", 3));
  const dialog = $("[role=alertdialog]");
  expect(dialog.textContent).toContain("/a.md was changed while you edited it, by person user_ann.");
  const ways = [...dialog.querySelectorAll("button")].map((each) => each.textContent);
  expect(ways).toEqual(["Keep mine", "Take theirs", "Open diff", "Cancel"]);
  button(dialog, "Keep mine").click();
  expect(model.asked("save").at(-1).params).toEqual({ path: "/a.md", text: "mine\n", expect: "sha-theirs" });
});

test("on a conflict, theirs is taken and the draft is gone", async () => {
  const { model, $ } = await conflicting(version("v3", 3));
  button($("[role=alertdialog]"), "Take theirs").click();
  await model.answer("read", content(3, "theirs\n"));
  expect($(".mk-text").textContent).toBe("theirs\n");
  expect($("textarea").parentElement.hidden).toBe(true);
});

test("on a conflict, the diff of theirs and mine opens and the choice stays", async () => {
  const { model, $ } = await conflicting(version("v3", 3));
  button($("[role=alertdialog]"), "Open diff").click();
  await model.answer("draft", { id: "draft:1" });
  expect(model.asked("diff").at(-1).params).toMatchObject({ old: "v3", new: "draft:1" });
  expect(button($("[role=alertdialog]"), "Keep mine")).toBeTruthy();
});

test("a memory that was deleted meanwhile can be written again", async () => {
  const { model, $ } = await conflicting(null);
  expect(button($("[role=alertdialog]"), "Give it up")).toBeTruthy();
  button($("[role=alertdialog]"), "Keep mine").click();
  expect(model.asked("save").at(-1).params.expect).toBe("");
});

test("whoever goes elsewhere with an edit that is not saved is asked first", async () => {
  const { model, root, type, $ } = await editing("SI\n");
  type("half\n");
  row(root, "c.md").click();
  expect($("textarea").value).toBe("half\n");
  expect(model.get("selected")).toBe("/a.md");
  button($("[role=alertdialog]"), "Give up").click();
  expect(model.get("selected")).toBe("/b/c.md");
  expect($("textarea").closest("[hidden]")).toBeTruthy();
});

test("Esc leaves the editor, and asks first where something is changed", async () => {
  const { area, type, $ } = await editing("SI\n");
  type("half\n");
  press(area, "Escape");
  expect($("[role=alertdialog]").textContent).toContain("Give up what you changed?");
  button($("[role=alertdialog]"), "Cancel").click();
  expect($("textarea").parentElement.hidden).toBe(false);
  press(area, "Escape");
  button($("[role=alertdialog]"), "Give up").click();
  expect($("textarea").parentElement.hidden).toBe(true);
});

test("where a save is refused, the text stays in the editor", async () => {
  const { model, area, type, $ } = await editing("SI\n");
  type("too long");
  press(area, "s", { ctrlKey: true });
  await model.refuse("save", "104,220 bytes, the limit is 102,400", "Split it.");
  expect($(".mk-failures [role=alert]").textContent).toContain("Save: 104,220 bytes, the limit is 102,400. Split it.");
  expect(area.value).toBe("too long");
  expect(area.parentElement.hidden).toBe(false);
});

test("a new memory is written where none may be", async () => {
  const { model, $ } = browse();
  button($(".mk-bar"), "New…").click();
  $("textarea").value = "text";
  $("textarea").dispatchEvent(new Event("input"));
  button($("textarea + .mk-bar"), "Save").click();
  const path = $("[role=alertdialog] input");
  expect(path.value).toBe("/");
  path.value = "/new.md";
  press(path, "Enter");
  expect(model.asked("save")[0].params).toEqual({ path: "/new.md", text: "text", expect: "" });
});

test("a deletion is asked for, and asked once more where the memory changed meanwhile", async () => {
  const { model, $ } = await opened();
  button($(".mk-content"), "Delete…").click();
  button($("[role=alertdialog]"), "Delete").click();
  expect(model.asked("delete")[0].params).toEqual({ path: "/a.md", expect: "sha" });
  await model.answer("delete", { conflict: { version: version("v3", 3), sha256: "sha-theirs", words: "Meanwhile" } });
  expect($("[role=alertdialog]").textContent).toContain("Meanwhile");
  button($("[role=alertdialog]"), "Delete").click();
  expect(model.asked("delete")[1].params).toEqual({ path: "/a.md", expect: "sha-theirs" });
  await model.answer("delete", { version: version("v4", 4, "/a.md", "deleted") });
  expect(model.get("selected")).toBe("");
});

test("a rename asks for the new path, and goes there", async () => {
  const { model, $ } = await opened();
  button($(".mk-content"), "Rename…").click();
  const input = $("[role=alertdialog] input");
  expect(input.value).toBe("/a.md");
  input.value = "/units.md";
  press(input, "Enter");
  expect(model.asked("rename")[0].params).toEqual({ path: "/a.md", new_path: "/units.md" });
  await model.answer("rename", { moved: 1 });
  expect(model.get("selected")).toBe("/units.md");
});

test("a read-only browser has no button that changes anything, and says why", async () => {
  const { root, $ } = await opened({ readonly: true, reason: "the store is archived" });
  const shown = [...root.querySelectorAll("button")].filter((each) => !each.closest("[hidden]"));
  const changing = /New|Edit|Save|Rename|Delete…|Restore|Redact/;
  expect(shown.map((each) => each.textContent).filter((label) => changing.test(label))).toEqual([]);
  expect($(".mk-bar .mk-tag").textContent).toBe("the store is archived");
  press(root, "e");
  expect($("textarea").parentElement.hidden).toBe(true);
});

test("a search shows what was found with its lines", async () => {
  const { model, root, $ } = browse();
  $("input[type=search]").value = "/si units";
  press($("input[type=search]"), "Enter");
  expect(model.asked("search")[0].params).toEqual({ text: "si units" });
  const hit = ["/a.md", "v2", 2, [[3, [[0, "We use "], [1, "SI"]]]]];
  await model.answer("search", { total: 1, words: ["si", "units"], hits: [hit] });
  expect($(".mk-snippet").textContent).toBe("3  We use SI");
  expect($(".mk-snippet mark").textContent).toBe("SI");
  $(".mk-hit").click();
  await model.answer("read", content(2, "a\nb\nWe use SI\n"));
  press($(".mk-hit"), "Escape");
  expect(names(root)).toEqual(["a.md", "b", "c.md"]);
  expect($("input[type=search]").value).toBe("");
});

test("what a search found after it was left is not shown", async () => {
  const { model, root, $ } = browse();
  $("input[type=search]").value = "/si units";
  press($("input[type=search]"), "Enter");
  press($("input[type=search]"), "Escape");
  await model.answer("search", { total: 1, words: ["si"], hits: [["/a.md", "v2", 2, []]] });
  expect(root.querySelector(".mk-hit")).toBeNull();
  expect(names(root)).toEqual(["a.md", "b", "c.md"]);
});

test("where no store is in use, the stores are there to choose from", async () => {
  const stores = [["memstore_1", "Team notes", "House rules", 2, AT, null], ["memstore_2", "Old", "", 0, AT, AT]];
  const { model, root, $ } = browse({ store: "", stores });
  const shown = [...root.querySelectorAll(".mk-store .mk-name")].map((each) => each.textContent);
  expect(shown).toEqual(["Team notes", "Old"]);
  $(".mk-store").click();
  expect(model.asked("choose")[0].params).toEqual({ store: "memstore_1" });
  model.set("store", "memstore_1");
  expect(names(root)).toEqual(["a.md", "b", "c.md"]);
});

test("deleted memories are listed, too, and say so", () => {
  const { model, root, $ } = browse();
  button($(".mk-bar"), "Deleted").click();
  expect(model.get("show_deleted")).toBe(true);
  model.set("memories", [memory("/a.md"), ["/gone.md", null, AT, "v7"]]);
  expect(row(root, "gone.md").textContent).toContain("deleted");
});

test("a version that is not the head can be restored or redacted, where Python says so", async () => {
  const { model, $ } = browse();
  $("[role=option]").click();
  await model.answer("read", content(1, "old", { head: false, state: "not the head", restorable: true }));
  expect($(".mk-content").textContent).toContain("not the head");
  button($(".mk-content"), "Restore…").click();
  button($("[role=alertdialog]"), "Restore").click();
  expect(model.asked("restore")[0].params).toMatchObject({ version: "v1", head: "" });
  button($(".mk-content"), "Redact…").click();
  expect(model.asked("redaction")[0].params).toEqual({ version: "v1" });
});

test("a rendered text has only the tags of a text", async () => {
  const mark = ["⟨U+202E⟩", "U+202E"];
  const nodes = [["script", [["", "alert(1)"]]], ["a", [["", "here"]]], ["p", [["", ["a", mark]]]]];
  const { model, root } = browse();
  row(root, "a.md").click();
  await model.answer("read", content(2, "x", { nodes }));
  expect(root.querySelector(".mk-preview").querySelectorAll("script, a").length).toBe(0);
  expect(root.querySelector(".mk-preview p .mk-mark").textContent).toBe("⟨U+202E⟩");
});

test("a head that somebody else wrote is shown, but never over an edit", async () => {
  const { model, $ } = await opened();
  model.set("versions", [version("v3", 3), version("v2", 2)]);
  expect($("[role=option] b").textContent).toBe("@3 ");
  await model.answer("read", content(3, "newer"));
  expect($(".mk-text").textContent).toBe("newer");
  button($(".mk-content"), "Edit").click();
  await model.answer("edit", { text: "newer", sha256: "sha", version: version("v3", 3) });
  model.set("versions", [version("v4", 4), version("v3", 3)]);
  expect($("textarea").value).toBe("newer");
  expect(model.asked("read").length).toBe(2);
});

test("what Python selects is shown, what it wrote is listed", async () => {
  const { model, root, $ } = browse();
  model.set("selected", "/b/c.md");
  await model.answer("read", content(1, "c", { path: "/b/c.md", version: version("v9", 1, "/b/c.md") }));
  expect($(".mk-text").textContent).toBe("c");
  model.set("total", 3);
  model.set("memories", [memory("/a.md"), memory("/b/c.md"), memory("/new.md")]);
  expect(names(root)).toContain("new.md");
});

test("a refusal is one visible line with Retry", async () => {
  const { model, root, $ } = browse();
  row(root, "a.md").click();
  await model.refuse("read", "/a.md is not in team-notes", "It was deleted.");
  expect($(".mk-failures [role=alert]").textContent).toContain("Open: /a.md is not in team-notes. It was deleted.");
  button($(".mk-failures"), "Retry").click();
  expect(model.asked("read").length).toBe(2);
});
