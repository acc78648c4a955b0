import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openFrame } from "../src/frame.js";
import { keyed } from "../src/sandbox/keyed.js";
import { stateWords } from "../src/sandbox/mounts.js";
import { sandboxPanel } from "../src/sandbox/view.js";
import { h } from "../src/dom.js";
import { fakeModel } from "./model.js";

const AT = "2026-11-30T09:21:05Z";
const CHANGE = ["cell-1", "modified", "team-notes", "/plan.md", "memver_2", 2, 1700, 3, 1, ""];
const STATE = {
  status: "running",
  sentence: "free for the next cell",
  name: "main",
  limits: [["memory", "512 MiB"]],
  isolation: "Docker container: no network",
  mounts: [["memstore_1", "team-notes", "/mnt/memory/team-notes", "read_write", 0, 0, 0, 0, []]],
  cells: [["cell-1", "cell 1", "open('x')", "ok", "done", null, "15 ms", AT, [], 0]],
  changes: [CHANGE],
  left_out: 0,
  conflicts: [],
  put_aside: 0,
  readonly: false,
  as_of: AT,
};
const CONFLICT = ["rej_1", "team-notes", "/plan.md", "modified", 5, AT, "was edited both here and in the store"];

let frame;
let model;

function open(more = {}) {
  const el = document.body.appendChild(document.createElement("div"));
  model = fakeModel({ ...STATE, ...more });
  frame = openFrame({ model, el });
  sandboxPanel(frame);
  return frame.root;
}

function button(name, within = frame.root) {
  const names = (each) => [each.textContent, each.getAttribute("aria-label")];
  return [...within.querySelectorAll("button")].find((each) => names(each).includes(name));
}

const painted = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

beforeEach(() => vi.stubGlobal("ResizeObserver", class { observe() {} disconnect() {} }));

afterEach(() => {
  frame?.close();
  document.body.replaceChildren();
  vi.unstubAllGlobals();
});

describe("the panel", () => {
  it("paints all from the state, and asks for nothing", () => {
    const root = open();
    const facts = ["sandbox main", "free for the next cell", "512 MiB", "no network", "in sync"];
    for (const part of [...facts, "~ modified", "+3 −1 · @2 · 1.7 KB"]) expect(root.textContent).toContain(part);
    expect(model.sent).toEqual([]);
  });

  it("shows a stored text as text", () => {
    const root = open({ changes: [[...CHANGE.slice(0, 3), "/<img src=x onerror=alert(1)>", ...CHANGE.slice(4)]] });
    expect(root.querySelector("img")).toBeNull();
    expect(root.textContent).toContain("/<img src=x");
  });

  it("leaves the rows of earlier cells where they are", async () => {
    const root = open();
    const first = root.querySelector(".mk-entry");
    model.set("cells", [["cell-2", "cell 2", "", "running", "running", null, "", AT, [], 0], ...STATE.cells]);
    await painted();
    expect([...root.querySelectorAll(".mk-entry b")].map((each) => each.textContent)).toEqual(["cell 2", "cell 1"]);
    expect(root.querySelectorAll(".mk-entry")[1]).toBe(first);
    expect(root.querySelector("[role=status]").textContent).toBe("cell 2 running");
  });

  it("asks for the version before as the old text, and closes what was opened", async () => {
    const root = open();
    button("/plan.md").click();
    await painted();
    expect(model.asked("diff")[0].params).toMatchObject({ old: "prev", new: "memver_2" });
    expect(button("/plan.md").getAttribute("aria-expanded")).toBe("true");
    button("/plan.md").click();
    expect(root.querySelector(".mk-diff")).toBeNull();
  });

  it("names the store of a file where there are several", () => {
    const second = ["memstore_2", "handbook", "/mnt/memory/handbook", "read_only", null, null, 0, 0, []];
    const root = open({ mounts: [...STATE.mounts, second] });
    expect(root.querySelector(".mk-file").textContent).toContain("team-notes:/plan.md");
    expect(root.querySelectorAll(".mk-mounts tbody tr")[1].textContent).toContain("read-onlynot known now");
  });

  it("offers only what can be done now", () => {
    const disabled = () => ["Sync now", "Interrupt", "Stop"].map((name) => button(name).disabled);
    open({ status: "busy" });
    expect(disabled()).toEqual([true, false, false]);
    expect(button("Reset team-notes")).toBeUndefined();
    frame.close();
    open({ status: "stopped" });
    expect(disabled()).toEqual([true, true, true]);
  });

  it("has no button that changes anything where it is for reading", () => {
    open({ readonly: true, conflicts: [CONFLICT], put_aside: 1 });
    for (const name of ["Sync now", "Stop", "Mine: /plan.md"]) expect(button(name)).toBeUndefined();
    expect(button("Show the difference")).toBeDefined();
  });

  it("tells what a sync did, and a failure in one line with Retry", async () => {
    const root = open();
    button("Sync now").click();
    await model.answer("sync", { said: "1 change saved in team-notes (/a.md)" });
    expect(root.querySelector(".mk-said").textContent).toBe("Sync: 1 change saved in team-notes (/a.md)");
    button("Sync now").click();
    await model.refuse("sync", "the database does not answer", "Try again later.");
    const line = root.querySelector("[role=alert]").textContent;
    expect(line).toContain("Sync: the database does not answer. Try again later.");
    button("Retry").click();
    expect(model.asked("sync")).toHaveLength(3);
  });

  it("asks before it stops or resets", () => {
    const root = open();
    button("Stop").click();
    button("Cancel", root.querySelector("[role=alertdialog]")).click();
    button("Reset team-notes").click();
    button("Reset team-notes", root.querySelector("[role=alertdialog]")).click();
    expect(model.sent.map(({ method, params }) => [method, params])).toEqual([["reset", { store: "memstore_1" }]]);
  });
});

describe("what was put aside", () => {
  it("is settled with the version that it was compared with", async () => {
    open({ conflicts: [CONFLICT], put_aside: 1 });
    button("Show the difference").click();
    const names = ["@3 in the store", "yours, put aside"];
    await model.answer("aside", { old: "memver_3", new: "rejected:rej_1", names });
    button("Mine: /plan.md").click();
    expect(model.asked("resolve")[0].params).toEqual({ id: "rej_1", how: "mine", seen: "memver_3" });
  });

  it("is not discarded without a question", () => {
    const root = open({ conflicts: [CONFLICT], put_aside: 1 });
    button("Discard: /plan.md").click();
    expect(model.asked("resolve")).toEqual([]);
    button("Discard", root.querySelector("[role=alertdialog]")).click();
    expect(model.asked("resolve")[0].params).toEqual({ id: "rej_1", how: "theirs", seen: null });
  });

  it("has no second text where it was a deletion", () => {
    open({ conflicts: [[...CONFLICT.slice(0, 3), "deleted", null, ...CONFLICT.slice(5)]], put_aside: 1 });
    expect(button("Both: /plan.md")).toBeUndefined();
    expect(button("Mine: /plan.md").title).toBe("Delete the store's as well");
  });

  it("goes when it is settled, with its difference", async () => {
    const root = open({ conflicts: [CONFLICT], put_aside: 1 });
    button("Show the difference").click();
    const names = ["nothing in the store", "yours, put aside"];
    await model.answer("aside", { old: "", new: "rejected:rej_1", names });
    button("Mine: /plan.md").focus();
    model.set("put_aside", 0);
    model.set("conflicts", []);
    await painted();
    expect(root.querySelector(".mk-conflict")).toBeNull();
    expect(root.querySelector(".mk-aside").hidden).toBe(true);
    expect(document.activeElement).toBe(root);
  });
});

describe("the state of a mount", () => {
  it("is in words", () => {
    const mount = { toSave: 0, toBring: 0, putAside: 0, heldBack: 0 };
    expect(stateWords(mount)).toBe("in sync");
    expect(stateWords({ ...mount, toSave: 2, putAside: 1 })).toBe("2 to save, 1 put aside");
    expect(stateWords({ ...mount, toSave: null, toBring: null })).toBe("not known now");
  });

  it("tells of deletions that were held back", () => {
    const mount = [...STATE.mounts[0].slice(0, 7), 4, ["/a.md", "/b.md"]];
    const root = open({ mounts: [mount] });
    const line = root.querySelector(".mk-held").textContent;
    expect(line).toContain("4 deletions held back in team-notes (/a.md, /b.md, …).");
    button("Delete them after all").click();
    expect(model.asked("delete_held_back")).toHaveLength(1);
  });
});

describe("keyed", () => {
  const draw = ({ words }) => h("li", {}, words);

  it("draws what is new or has changed, in its place", () => {
    const list = h("ul");
    keyed(list, [{ key: "a", words: "A" }, { key: "b", words: "B" }], draw);
    const [a, b] = list.children;
    const now = [["c", "C"], ["b", "B2"], ["a", "A"]];
    keyed(list, now.map(([key, words]) => ({ key, words })), draw);
    expect([...list.children].map((each) => each.textContent)).toEqual(["C", "B2", "A"]);
    expect(list.children[2]).toBe(a);
    expect(list.contains(b)).toBe(false);
  });
});
