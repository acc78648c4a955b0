import { agentRun } from "../src/run/view.js";
import { openFrame } from "../src/frame.js";
import { fakeModel } from "./model.js";

/** A run as Python's state tells it. */
export function runState(more = {}) {
  return {
    kind: "run",
    run_id: "run_1",
    title: "Team notes",
    model: "claude-sonnet-5-5",
    badge: "",
    status: "running",
    turn: 1,
    max_turns: 50,
    usage: { in: 0, out: 0, cache_read: 0, cache_write: 0, cost: null, budget: null },
    words: runWords(),
    started_at: "2026-11-30T09:21:00.000Z",
    elapsed_s: 0,
    snapshot: [],
    left_out: 0,
    n: 0,
    ...more,
  };
}

/** What Python says of it (widgets/run_standing.py). */
export function runWords(more = {}) {
  return {
    status: "running",
    turn: "turn 1 of 50",
    usage: "0 tokens in, 0 out",
    cost: "$0.10 of $1.00",
    time: "",
    stop: ["■ Stop", "Stop the run", "Stopping…"],
    ...more,
  };
}

export function openRun(state = {}) {
  const el = document.createElement("div");
  document.body.replaceChildren(el);
  const model = fakeModel(runState(state));
  const frame = openFrame({ model, el });
  agentRun(frame);
  const stream = (...changes) => model.emit("msg:custom", { event: "stream", changes });
  return { root: el.querySelector(".mk"), model, frame, stream };
}

export const prompt = { k: 1, n: 1, kind: "prompt", text: "Tidy the notes" };

export function call(more = {}) {
  const kind = { kind: "tool", call: "toolu_1", text: "memory create /memories/a.md", state: "running…", error: false };
  return { k: 2, n: 2, ...kind, parts: [["Arguments", '{"command": "create"}']], made: [], ...more };
}

/** The same call while it waits for a person. */
export function waiting(more = {}) {
  const asks = [
    ["approve", {}, "Approve", "Let this call run"],
    ["approve", { whole_tool: true }, "Approve all of memory", "Ask no more about memory"],
    ["deny", { reason: "" }, "Deny", "It does not run"],
  ];
  return call({ n: 3, state: "waits for your approval", asks, ...more });
}

/** Python says how the run stands now. */
export function nowIs(model, status, words) {
  model.set("status", status);
  model.set("words", { ...model.get("words"), status: words ?? status });
}

/** The words of the entries, in their order. */
export function shown(root) {
  return [...root.querySelectorAll(".mk-run-entry")].map((each) => each.textContent);
}
