import { h } from "../dom.js";

const STOP = "■ Stop";

/** The line above: who answers, how far it is, what it used, and Stop. */
export function runHead(frame) {
  const [status, turn, elapsed, usage] = ["b.mk-tag", "span", "span", "span"].map((tag) => h(tag));
  const turns = h("progress", { max: frame.get("max_turns"), "aria-label": "Turns" });
  const stop = frame.button(STOP, "Stop the run: what it has said and done stays", askToStop, {
    class: "mk-button mk-danger",
  });
  const title = frame.get("title");
  const element = h(
    "div.mk-bar",
    h("span.mk-title", frame.get("model")),
    title ? `on ${title}` : null,
    status,
    frame.get("badge") ? h("span.mk-tag", frame.get("badge")) : null,
    turns,
    turn,
    elapsed,
    h("span.mk-gap"),
    usage,
    stop,
  );
  const clock = setInterval(tick, 1000);
  frame.onClose(() => clearInterval(clock));

  async function askToStop() {
    stop.disabled = true;
    stop.textContent = "Stopping…";
    if (await frame.attempt("Stop", async () => (await frame.call("stop"), true))) return;
    stop.disabled = false;
    stop.textContent = STOP;
  }

  function update() {
    const words = frame.get("words") ?? {};
    status.textContent = words.status;
    turn.textContent = words.turn;
    usage.textContent = words.usage;
    turns.value = frame.get("turn");
    turns.hidden = !frame.get("max_turns");
    stop.hidden = frame.get("status") !== "running";
    frame.root.dataset.status = frame.get("status");
    tick();
  }

  function tick() {
    const going = frame.get("status") === "running";
    const since = Math.max(0, Math.floor((Date.now() - Date.parse(frame.get("started_at"))) / 1000));
    elapsed.textContent = duration(going ? since : frame.get("elapsed_s"));
  }

  return { element, update };
}

/** `0.4 s`, `12 s`, `3 min 5 s` */
export function duration(seconds) {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}
