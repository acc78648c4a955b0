import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openFrame } from "../src/frame.js";
import { keyed } from "../src/sandbox/keyed.js";
import { sandboxPanel } from "../src/sandbox/view.js";
import { h } from "../src/dom.js";
import { fakeModel } from "./model.js";

const SYNC = ["sync", "Sync now", "Save and bring", ""];
const STOP = ["stop", "Stop", "Save all and end the sandbox", "Stop the sandbox?"];
const RESET = ["reset", "Reset…", "Make it equal to its store", "Make it equal?"];
const STATE = {
  status: "running",
  sentence: "running: free for the next cell",
  name: "main",
  limits: [["memory", "512 MiB"]],
  isolation: "Docker container: no network",
  buttons: [SYNC, STOP],
  mounts: [["team-notes", "/mnt/memory/team-notes", "read-write · in sync", "memstore_1", RESET]],
  held: [],
  cells: [["cell-1", "cell 1", "done · 15 ms", "mk-facts", "open('x')", "09:21:05", ["a note"]]],
  changes: [["cell-1", "mk-made", "+ created", "/plan.md", "memver_2", "+3 · @1 · 1.7 KB"]],
  conflicts: [],
  choices: {
    mine: ["resolve", "Mine", "The text that was put aside", ""],
    both: ["resolve", "Both", "Beside the store's", ""],
    theirs: ["resolve", "Discard", "Forget it", "Forget what was put aside?"],
  },
  titles: ["Put aside (1)", "Cells, newest first"],
  as_of: "2026-11-30T09:21:05Z",
};
const CONFLICT = ["rej_1", "team-notes:/plan.md", "modified · 5 B", "was edited both here and in the store"];
const HOWS = ["mine", "both", "theirs"];

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

const cells = () => [...frame.root.querySelectorAll(".mk-scroll > ul > li")];
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
    const facts = ["sandbox main", "free for the next cell", "memory 512 MiB", "no network", "read-write · in sync"];
    const cell = ["cell 1", "done · 15 ms", "open('x')", "09:21:05", "a note"];
    const file = ["+ created", "/plan.md", "+3 · @1 · 1.7 KB"];
    for (const part of [...facts, ...cell, ...file]) expect(root.textContent).toContain(part);
    expect(model.sent).toEqual([]);
    expect(root.querySelector(".mk-aside").hidden).toBe(true);
  });

  it("shows a stored text as text", () => {
    const evil = "/<img src=x onerror=alert(1)>";
    const root = open({ changes: [["cell-1", "mk-made", "+ created", evil, "memver_2", ""]] });
    expect(root.querySelector("img")).toBeNull();
    expect(root.textContent).toContain(evil);
  });

  it("leaves the rows of earlier cells where they are, and says what is new", async () => {
    const root = open();
    const [first] = cells();
    model.set("cells", [["cell-2", "cell 2", "running", "mk-facts", "", "09:22:00", []], ...STATE.cells]);
    model.set("sentence", "busy: cell 2 runs");
    await painted();
    expect(cells().map((each) => each.querySelector("b").textContent)).toEqual(["cell 2", "cell 1"]);
    expect(cells()[1]).toBe(first);
    expect(root.querySelector("[role=status]").textContent).toBe("busy: cell 2 runs");
  });

  it("asks for the version before as the old text, and closes what was opened", async () => {
    const root = open();
    button("/plan.md").click();
    await painted();
    expect(model.asked("diff")[0].params).toMatchObject({ old: "prev", new: "memver_2" });
    expect(button("/plan.md").getAttribute("aria-expanded")).toBe("true");
    button("/plan.md").click();
    expect(root.querySelector(".mk-diff")).toBeNull();
    expect(button("/plan.md").getAttribute("aria-expanded")).toBe("false");
  });

  it("keeps a difference open while its cell is drawn anew", async () => {
    const root = open();
    button("/plan.md").click();
    model.set("cells", [["cell-1", "cell 1", "done · 16 ms", "mk-facts", "", "09:21:05", []]]);
    await painted();
    expect(root.querySelectorAll(".mk-diff")).toHaveLength(1);
    model.set("changes", []);
    await painted();
    expect(root.querySelector(".mk-diff")).toBeNull();
  });

  it("has the buttons that there are now", async () => {
    open({ buttons: [], mounts: [[...STATE.mounts[0].slice(0, 4), null]] });
    expect(frame.root.querySelectorAll(".mk-bar button, [aria-label=Stores] button")).toHaveLength(0);
    model.set("buttons", [["interrupt", "Interrupt", "Interrupt the cell", ""]]);
    await painted();
    button("Interrupt").click();
    expect(model.asked("interrupt")).toHaveLength(1);
  });

  it("tells what a sync did, and a failure in one line with Retry", async () => {
    const root = open();
    button("Sync now").click();
    await model.answer("sync", { said: "1 change saved in team-notes (/a.md)" });
    expect(root.querySelector("p.mk-dialog").textContent).toBe("1 change saved in team-notes (/a.md)");
    button("Sync now").click();
    await model.refuse("sync", "the database does not answer", "Try again later.");
    const line = root.querySelector("[role=alert]").textContent;
    expect(line).toContain("Sync now: the database does not answer. Try again later.");
    button("Retry").click();
    expect(model.asked("sync")).toHaveLength(3);
  });

  it("asks before it stops or resets", () => {
    const root = open();
    button("Stop").click();
    button("Cancel", root.querySelector("[role=alertdialog]")).click();
    button("Reset team-notes").click();
    button("Reset…", root.querySelector("[role=alertdialog]")).click();
    expect(model.sent.map(({ method, params }) => [method, params])).toEqual([["reset", { store: "memstore_1" }]]);
  });

  it("tells of deletions that were held back", () => {
    const words = "2 deletions held back in team-notes (/a.md, /b.md).";
    const root = open({ held: [[words, "delete_held_back", "Delete them after all", "Carry them out", ""]] });
    expect(root.textContent).toContain(words);
    button("Delete them after all").click();
    expect(model.asked("delete_held_back")).toHaveLength(1);
  });
});

describe("what was put aside", () => {
  it("is compared with what the store holds, and settled", async () => {
    open({ conflicts: [[...CONFLICT, HOWS]] });
    button("Show the difference").click();
    expect(model.asked("diff")[0].params).toMatchObject({ old: "head:rej_1", new: "rejected:rej_1" });
    button("Mine: team-notes:/plan.md").click();
    expect(model.asked("resolve")[0].params).toEqual({ id: "rej_1", how: "mine" });
    await model.refuse("resolve", "/plan.md was changed in the store meanwhile");
    expect(model.asked("diff")).toHaveLength(2); // as the store is now
  });

  it("is not discarded without a question", () => {
    const root = open({ conflicts: [[...CONFLICT, HOWS]] });
    button("Discard: team-notes:/plan.md").click();
    expect(model.asked("resolve")).toEqual([]);
    button("Discard", root.querySelector("[role=alertdialog]")).click();
    expect(model.asked("resolve")[0].params).toEqual({ id: "rej_1", how: "theirs" });
  });

  it("offers the ways that there are", () => {
    open({ conflicts: [[...CONFLICT, ["mine", "theirs"]]] });
    expect(button("Both: team-notes:/plan.md")).toBeUndefined();
    expect(button("Mine: team-notes:/plan.md")).toBeDefined();
  });

  it("goes when it is settled, with its difference, and leaves the focus in the panel", async () => {
    const root = open({ conflicts: [[...CONFLICT, HOWS]] });
    button("Show the difference").click();
    button("Mine: team-notes:/plan.md").focus();
    model.set("conflicts", []);
    await painted();
    expect(root.querySelector(".mk-diff")).toBeNull();
    expect(root.querySelector(".mk-aside").hidden).toBe(true);
    expect(document.activeElement).toBe(root);
  });
});

describe("keyed", () => {
  it("draws what is new or has changed, in its place", () => {
    const list = h("ul");
    const draw = ([, words]) => h("li", words);
    keyed(list, [["a", "A"], ["b", "B"]], draw);
    const [a, b] = list.children;
    keyed(list, [["c", "C"], ["b", "B2"], ["a", "A"]], draw);
    expect([...list.children].map((each) => each.textContent)).toEqual(["C", "B2", "A"]);
    expect(list.children[2]).toBe(a);
    expect(list.contains(b)).toBe(false);
  });
});
