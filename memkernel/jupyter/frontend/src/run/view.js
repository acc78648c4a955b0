import { aria } from "../dom.js";
import { isGoing, runHead } from "./head.js";
import { transcript } from "./transcript.js";

/** AgentRun: a run while it goes on, and afterwards. */
export function agentRun(frame) {
  const log = transcript(frame);
  const head = runHead(frame);
  let asking = false;

  /** A view that is opened while a turn goes on has missed its beginning; a kernel that is busy tells it later. */
  async function catchUp() {
    if (asking) return;
    asking = true;
    const state = await frame.call("now").catch(() => null); // else the snapshot at the end of the turn brings it
    asking = false;
    if (!state) return;
    log.put(state);
    after();
  }

  function putSnapshot() {
    log.put({ entries: frame.get("snapshot"), left_out: frame.get("left_out"), n: frame.get("n") });
    after();
  }

  function after() {
    if (log.misses()) catchUp();
    frame.ready(`${frame.get("status")}:${log.count()}`);
  }

  aria(frame.root, "label", `Agent run, ${frame.get("model")}`);
  frame.body.append(head.element, log.element);
  frame.keys({
    a: ["Go to what waits for approval", log.toWaiting],
    o: ["Open or close all tool calls", log.toggleCalls],
    End: ["Go to the newest", log.toNewest],
  });
  frame.onEvent(({ event, changes }) => {
    if (event !== "stream") return;
    log.take(changes);
    after();
  });
  frame.on("snapshot", putSnapshot);
  frame.on("words", () => {
    head.update();
    if (!isGoing(frame)) log.end(`The run is ${frame.get("words").status}`);
    after();
  });
  head.update();
  putSnapshot();
  if (isGoing(frame)) catchUp();
}
