import { h } from "../dom.js";
import { runHead } from "./head.js";
import { transcript } from "./transcript.js";

/** AgentRun: a run while it goes on, and afterwards. */
export function agentRun(frame) {
  const log = transcript(frame);
  const head = runHead(frame);
  let asking = false;

  function stream({ event, changes }) {
    if (event !== "stream") return;
    log.take(changes);
    if (log.misses()) catchUp();
    ready();
  }

  /** A view that is opened while a turn goes on has missed its beginning; a kernel that is busy tells it later. */
  async function catchUp() {
    if (asking) return;
    asking = true;
    try {
      log.put(await frame.call("now"));
    } catch {
      return; // the snapshot at the end of the turn brings it
    } finally {
      asking = false;
    }
    ready();
    if (log.misses()) catchUp();
  }

  function putSnapshot() {
    log.put({ entries: frame.get("snapshot") ?? [], left_out: frame.get("left_out") ?? 0, n: frame.get("n") ?? 0 });
    ready();
  }

  function onStatus() {
    head.update();
    log.end(isGoing(frame) ? "" : `The run is ${head.words()}`);
    ready();
  }

  function ready() {
    frame.ready(`${frame.get("status")}:${log.count()}`);
  }

  frame.root.setAttribute("aria-label", `Agent run, ${frame.get("model")}`);
  frame.body.append(head.element, log.element);
  frame.keys({
    o: ["Open or close all tool calls", log.toggleCalls],
    End: ["Go to the newest", log.toNewest],
  });
  frame.onEvent(stream);
  frame.on("snapshot", putSnapshot);
  frame.on("status", onStatus);
  for (const name of ["turn", "usage", "elapsed_s"]) frame.on(name, head.update);
  frame.onClose(head.dispose);
  putSnapshot();
  head.update();
  if (isGoing(frame)) catchUp();
}

/** @returns {boolean} whether the run goes on */
export function isGoing(frame) {
  return frame.get("status") === "running";
}
