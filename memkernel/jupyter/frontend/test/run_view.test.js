import { afterEach, expect, test, vi } from "vitest";
import { duration } from "../src/run/head.js";
import { call, nowIs, openRun, prompt, runWords, shown, waiting } from "./run_fixture.js";

afterEach(() => vi.useRealTimers());

const openDone = (snapshot, more) => openRun({ status: "done", snapshot, n: 2, ...more });

function button(root, words) {
  return [...root.querySelectorAll("button")].find((each) => each.textContent.includes(words));
}

// -- the stream --------------------------------------------------------------------------------------

test("words are joined as they come, and what was seen is not shown twice", () => {
  const { root, stream } = openRun({ snapshot: [prompt], n: 1 });
  stream({ k: 2, n: 2, kind: "text", text: "Once" }, { k: 2, n: 3, add: " upon" });
  stream({ k: 2, n: 3, add: " upon" }, { k: 2, n: 4, add: " a time" });
  expect(shown(root)).toEqual(["Tidy the notes", "Once upon a time"]);
  expect(root.querySelector(".mk-run-text .mk-run-words").childNodes.length).toBe(1);
});

test("a character that cannot be seen is a mark, and markup is text", () => {
  const { root, stream } = openRun({ snapshot: [prompt], n: 1 });
  stream({ k: 2, n: 2, kind: "text", text: "<img src=x onerror=alert(1)>" });
  stream({ k: 2, n: 3, add: ["a", ["⟨U+202E⟩", "U+202E"]] });
  expect(root.querySelector("img")).toBe(null);
  expect(root.querySelector(".mk-mark").textContent).toBe("⟨U+202E⟩");
  expect(shown(root)[1]).toBe("<img src=x onerror=alert(1)>a⟨U+202E⟩");
});

test("a turn that begins anew takes away what it had streamed", () => {
  const { root, stream } = openRun({ snapshot: [prompt], n: 1 });
  stream({ k: 2, n: 2, kind: "text", text: "Half a" });
  const notice = { k: 3, n: 4, kind: "notice", text: "Trying again." };
  stream({ n: 3, drop: 2 }, notice, { k: 4, n: 5, kind: "text", text: "Whole" });
  expect(shown(root)).toEqual(["Tidy the notes", "Trying again.", "Whole"]);
});

test("what was missed is asked for, and everything comes in its place", async () => {
  const { root, model, stream } = openRun({ snapshot: [], n: 0 });
  expect(model.asked("now").length).toBe(1);
  stream({ k: 3, n: 7, add: " and more" });
  await model.answer("now", {
    entries: [prompt, call({ n: 4, state: "12 ms" }), { k: 3, n: 8, kind: "text", text: "Words and more." }],
    left_out: 0,
    n: 8,
  });
  const called = 'memory create /memories/a.md 12 msArguments{"command": "create"}';
  expect(shown(root)).toEqual(["Tidy the notes", called, "Words and more."]);
  stream({ k: 3, n: 9, add: " Yes." });
  expect(shown(root)[2]).toBe("Words and more. Yes.");
  expect(model.asked("now").length).toBe(1);
});

test("a kernel that does not answer is waited for without a word: the snapshot brings it", async () => {
  const { root, model, stream } = openRun();
  stream({ k: 3, n: 7, add: " and more" });
  await model.refuse("now", "busy");
  expect(root.querySelector(".mk-failure")).toBe(null);
  model.set("n", 8);
  model.set("snapshot", [prompt, { k: 3, n: 8, kind: "text", text: "Words and more." }]);
  expect(shown(root)).toEqual(["Tidy the notes", "Words and more."]);
});

test("a view that is opened later shows the same from the state, and asks for nothing", () => {
  const { root, model } = openDone([prompt, call({ state: "5 ms" })], { n: 9, elapsed_s: 4.3 });
  expect(shown(root).length).toBe(2);
  expect(model.sent).toEqual([]);
  expect(root.querySelector(".mk-bar").textContent).toContain("4.3 s");
});

// -- entries -----------------------------------------------------------------------------------------

test("a call runs, then has its result and its time; an error is said in words", () => {
  const { root, stream } = openRun({ snapshot: [prompt, call()], n: 2 });
  const details = root.querySelector(".mk-run-tool > details");
  details.open = true;
  expect(details.querySelector("summary").textContent).toBe("memory create /memories/a.md running…");
  stream(call({ n: 3, error: true, state: "error · 1.5 s", parts: [["Error", "It exists."]] }));
  expect(root.querySelector(".mk-run-tool > details")).toBe(details);
  expect(details.open).toBe(true);
  expect(details.querySelector("summary").textContent).toBe("memory create /memories/a.md error · 1.5 s");
  expect(details.textContent).toContain("It exists.");
});

test("the versions of a call show their lines, and open what they changed", async () => {
  const made = [["memver_1", "~ /a.md @3 +2 −1", "/a.md"], ["", "and 3 more versions", ""]];
  const { root, model } = openDone([prompt, call({ made })]);
  const version = button(root, "/a.md");
  expect(version.textContent).toBe("~ /a.md @3 +2 −1");
  expect(root.querySelector(".mk-run-made").textContent).toContain("and 3 more versions");
  version.click();
  expect(version.getAttribute("aria-expanded")).toBe("true");
  expect(model.asked("diff")[0].params).toMatchObject({ old: "prev", new: "memver_1" });
  version.click();
  expect(root.querySelector(".mk-diff")).toBe(null);
});

test("a long entry is cut, and the rest comes when it is asked for", async () => {
  const more = "Show 4,000 more characters";
  const { root, model } = openDone([{ k: 1, n: 1, kind: "text", text: "Begin", more }]);
  button(root, "Show 4,000 more characters").click();
  expect(model.asked("whole")[0].params).toEqual({ entry: 1 });
  await model.answer("whole", { k: 1, n: 1, kind: "text", text: "Begin and end" });
  expect(shown(root)).toEqual(["Begin and end"]);
});

test("earlier entries come before the others", async () => {
  const { root, model } = openDone([{ k: 7, n: 9, kind: "text", text: "Last" }], { left_out: 2, n: 9 });
  button(root, "Show 2 earlier").click();
  expect(model.asked("earlier")[0].params).toEqual({ before: 7 });
  await model.answer("earlier", { entries: [prompt, call()], left_out: 0, n: 9 });
  expect(shown(root).map((each) => each.slice(0, 4))).toEqual(["Tidy", "memo", "Last"]);
  expect(button(root, "earlier").hidden).toBe(true);
});

// -- approval ----------------------------------------------------------------------------------------

function openWaiting() {
  const opened = openRun({ snapshot: [prompt, call()], n: 2 });
  opened.stream(waiting());
  nowIs(opened.model, "waiting", "waiting for approval");
  return { ...opened, group: opened.root.querySelector("[role=group]"), call: opened.root.querySelector("details") };
}

test("a call that waits is open, says so, and can be approved, once", async () => {
  const { root, model, group, call: details, stream } = openWaiting();
  const said = "memory create /memories/a.md waits for your approval";
  expect([details.open, details.querySelector("summary").textContent]).toEqual([true, said]);
  expect(root.querySelector(".mk-sr").textContent).toBe(said);
  expect([group.hidden, group.getAttribute("aria-label")]).toEqual([false, "memory create /memories/a.md"]);
  expect([...group.querySelectorAll("button")].map((each) => each.textContent)).toEqual([
    "Approve",
    "Approve all of memory",
    "Deny",
  ]);
  expect(model.asked("here").length).toBe(1);
  expect([root.dataset.status, button(root, "■ Stop").hidden]).toEqual(["waiting", false]);
  button(group, "Approve").click();
  button(group, "Approve").click();
  expect(model.asked("approve").map(({ params }) => params)).toEqual([{ entry: 2 }]);
  await model.answer("approve", null);
  stream(call({ n: 4, state: "approved", asks: [] }));
  expect([group.hidden, details.open]).toEqual([true, false]);
});

test("the whole tool is approved, or the call is denied with a reason", () => {
  const { model, group } = openWaiting();
  button(group, "Approve all").click();
  expect(model.asked("approve")[0].params).toEqual({ entry: 2, whole_tool: true });
  group.querySelector("input").value = "not on a Friday";
  button(group, "Deny").click();
  expect(model.asked("deny")[0].params).toEqual({ entry: 2, reason: "not on a Friday" });
});

test("Enter after a reason denies", () => {
  const { model, group } = openWaiting();
  const why = group.querySelector("input");
  why.value = "never";
  why.dispatchEvent(new KeyboardEvent("keydown", { key: "r", bubbles: true }));
  expect(model.asked("deny")).toEqual([]);
  why.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  expect(model.asked("deny")[0].params).toEqual({ entry: 2, reason: "never" });
});

test("where it could not be answered it can be tried again", async () => {
  const { root, model, group } = openWaiting();
  button(group, "Approve").click();
  await model.refuse("approve", "this waits for nothing");
  expect(root.querySelector("[role=alert]").textContent).toContain("Approve: this waits for nothing");
  button(group, "Approve").click();
  expect(model.asked("approve").length).toBe(2);
});

test("a key goes to what waits, and the focus stays in the call once it is answered", () => {
  const { root, group, call: details, stream } = openWaiting();
  root.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true }));
  expect(document.activeElement).toBe(button(group, "Approve"));
  const typed = new KeyboardEvent("keydown", { key: "o", bubbles: true });
  group.querySelector("input").dispatchEvent(typed); // a reason is typed: no key of the view
  expect(details.open).toBe(true);
  stream(call({ n: 4, state: "denied", asks: [] }));
  expect(document.activeElement).toBe(details.querySelector("summary"));
  root.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true }));
  expect(document.activeElement).toBe(details.querySelector("summary"));
});

test("a focus that is elsewhere is left there", () => {
  const { root, group, stream } = openWaiting();
  button(root, "■ Stop").focus();
  stream(call({ n: 4, state: "approved", asks: [] }));
  expect([group.hidden, document.activeElement]).toEqual([true, button(root, "■ Stop")]);
});

// -- the head ----------------------------------------------------------------------------------------

test("the head says who answers, that a script is none, the turn, the tokens and the status", () => {
  const words = { turn: "turn 3 of 50", usage: "1,200 tokens in, 34 out", cost: "$0.41 of $0.50" };
  const { root, model } = openRun({ badge: "scripted, not a language model", model: "scripted", turn: 3, words: runWords(words) });
  const head = root.querySelector(".mk-bar").textContent;
  for (const each of ["scripted, not a language model", "on Team notes", "running", "turn 3 of 50 · ", `${words.cost} · ${words.usage}`]) {
    expect(head).toContain(each);
  }
  expect([root.querySelector("progress").value, root.querySelector("progress").max]).toEqual([3, 50]);
  nowIs(model, "max_turns", "out of turns");
  expect(root.querySelector("b.mk-tag").textContent).toBe("out of turns");
});

test("stop asks once, and is offered again where it could not be asked", async () => {
  const { root, model } = openRun();
  button(root, "Stop").click();
  expect([model.asked("stop").length, button(root, "Stopping…").disabled]).toEqual([1, true]);
  await model.refuse("stop", "no");
  expect(root.querySelector("[role=alert]").textContent).toContain("Stop: no");
  expect(button(root, "■ Stop").disabled).toBe(false);
  nowIs(model, "stopped");
  expect(button(root, "■ Stop").hidden).toBe(true);
});

test("the clock runs while the run goes on and stands still afterwards", () => {
  vi.useFakeTimers({ now: Date.parse("2026-11-30T09:21:05.000Z") });
  const { root, model, frame } = openRun();
  expect(root.querySelector(".mk-bar").textContent).toContain("5 s");
  vi.advanceTimersByTime(60_000);
  expect(root.querySelector(".mk-bar").textContent).toContain("1 min 5 s");
  model.set("elapsed_s", 66);
  nowIs(model, "done");
  vi.advanceTimersByTime(60_000);
  expect(root.querySelector(".mk-bar").textContent).toContain("1 min 6 s");
  frame.close();
  expect(model.listening()).toBe(0);
});

test("the limit of the time stands beside the time, and a stored run has the time that it took", () => {
  const { root } = openRun({ words: runWords({ time: " of 2 min 0 s" }), elapsed_s: 9.5 });
  expect(root.querySelector(".mk-bar").textContent).toContain("9.5 s of 2 min 0 s");
});

test("the budget's bar has words and a level, and says it once for each level", () => {
  const usage = (...budget) => ({ in: 9, out: 9, cost: 0.4, budget });
  const { root, model } = openRun();
  const bar = root.querySelector("progress[aria-label=Budget]");
  const said = () => root.querySelector(".mk-sr").textContent;
  const stands = (...budget) => (model.set("usage", usage(...budget)), nowIs(model, "running"));
  expect(bar.hidden).toBe(true);
  stands(0.5, "fine", "50 % of the budget used");
  expect([bar.hidden, bar.value, bar.dataset.level, said()]).toEqual([false, 0.5, "fine", ""]);
  expect([bar.title, bar.getAttribute("aria-valuetext")]).toEqual(Array(2).fill("50 % of the budget used"));
  stands(0.8, "near", "80 % of the budget used");
  expect([bar.dataset.level, said()]).toEqual(["near", "80 % of the budget used"]);
  root.querySelector(".mk-sr").textContent = "";
  stands(0.9, "near", "90 % of the budget used");
  expect([bar.title, said()]).toEqual(["90 % of the budget used", ""]);
  stands(1, "full", "All of the budget used");
  expect([bar.dataset.level, said()]).toEqual(["full", "All of the budget used"]);
});

test("a stored run that is shown again can be hurried, in Python's words", async () => {
  const stop = ["Show the rest", "Show at once what is left", "Showing the rest…"];
  const { root, model } = openRun({ badge: "a run of before", words: runWords({ status: "shown again", stop }) });
  const rest = button(root, "Show the rest");
  rest.click();
  expect([model.asked("stop").length, rest.textContent, rest.disabled]).toEqual([1, "Showing the rest…", true]);
  nowIs(model, "elsewhere", "still running when this was read");
  expect([rest.hidden, root.dataset.status]).toEqual([true, "elsewhere"]);
});

test("durations read well", () => {
  expect([0, 0.4, 12, 60, 125.3].map(duration)).toEqual(["0 s", "0.4 s", "12 s", "1 min 0 s", "2 min 5 s"]);
});

// -- reading along -----------------------------------------------------------------------------------

test("it follows the newest until the reader scrolls up", () => {
  const { root, stream } = openRun({ snapshot: [prompt], n: 1 });
  const log = root.querySelector("[role=log]");
  let height = 500;
  Object.defineProperties(log, { scrollHeight: { get: () => height }, clientHeight: { get: () => 100 } });
  stream({ k: 2, n: 2, kind: "text", text: "one" });
  expect(log.scrollTop).toBe(500);
  log.scrollTop = 100; // whose event comes after the next words
  height = 900;
  stream({ k: 2, n: 3, add: " two" });
  expect([log.scrollTop, button(root, "Newest").hidden]).toEqual([100, false]);
  button(root, "Newest").click();
  expect([log.scrollTop, button(root, "Newest").hidden]).toEqual([900, true]);
});

test("a screen reader is told each entry once it is whole, and the end", () => {
  const { root, model, stream } = openRun({ snapshot: [prompt], n: 1 });
  const said = () => root.querySelector(".mk-sr").textContent;
  stream({ k: 2, n: 2, kind: "text", text: "Once" }, { k: 2, n: 3, add: " upon" });
  expect(said()).toBe("Tidy the notes");
  stream(call({ k: 3, n: 4 }));
  expect(said()).toBe("Once upon");
  stream(call({ k: 3, n: 5, state: "3 ms" }));
  nowIs(model, "done");
  expect(said()).toBe("memory create /memories/a.md 3 ms. The run is done");
});

test("one key opens and closes all calls", () => {
  const { root } = openRun({ status: "done", snapshot: [call(), call({ k: 3, n: 3 })], n: 3 });
  const press = () => root.dispatchEvent(new KeyboardEvent("keydown", { key: "o", bubbles: true }));
  const open = () => [...root.querySelectorAll("details")].map((each) => each.open);
  press();
  expect(open()).toEqual([true, true]);
  press();
  expect(open()).toEqual([false, false]);
});
