import { h } from "../dom.js";
import { number } from "../format.js";

const WORDS = { error: "failed", max_turns: "out of turns", max_tokens: "cut off" };
const SCRIPTED = "scripted, not a language model";

/** The line above: who answers, how far it is, what it used, and Stop. */
export function runHead(frame) {
  const badge = h("span", { class: "mk-run-status" });
  const turns = h("progress", { class: "mk-run-turns", "aria-label": "Turns" });
  const turnWords = h("span", { class: "mk-count" });
  const elapsed = h("span", { class: "mk-count", title: "How long it has been going on" });
  const usage = h("span", { class: "mk-count" });
  const stop = frame.button("■ Stop", "Stop the run: what it has said and done stays", askToStop, {
    class: "mk-button mk-danger",
  });
  const element = h(
    "div",
    { class: "mk-bar mk-run-head" },
    h("span", { class: "mk-title" }, frame.get("model")),
    frame.get("title") ? h("span", {}, `on ${frame.get("title")}`) : null,
    badge,
    frame.get("scripted") ? h("span", { class: "mk-tag" }, SCRIPTED) : null,
    h("span", { class: "mk-run-turn" }, turns, turnWords),
    elapsed,
    h("span", { class: "mk-gap" }),
    usage,
    stop,
  );
  const clock = setInterval(tick, 1000);

  async function askToStop() {
    stop.disabled = true;
    stop.textContent = "Stopping…";
    const asked = await frame.attempt("Stop", async () => (await frame.call("stop"), true));
    if (!asked) offerStop();
  }

  function offerStop() {
    stop.disabled = false;
    stop.textContent = "■ Stop";
  }

  function update() {
    const status = frame.get("status");
    badge.textContent = words();
    badge.dataset.status = status;
    frame.root.dataset.status = status;
    stop.hidden = status !== "running";
    if (stop.hidden) clearInterval(clock);
    showTurns(frame.get("turn") ?? 0, frame.get("max_turns") ?? 0);
    showUsage(frame.get("usage") ?? {});
    tick();
  }

  function showTurns(turn, most) {
    turns.hidden = !most;
    turns.max = most || 1;
    turns.value = turn;
    turnWords.textContent = most ? `turn ${number(turn)} of ${number(most)}` : `turn ${number(turn)}`;
  }

  function showUsage(used) {
    const { in: read = 0, out = 0, cache_read: cacheRead = 0, cache_write: cacheWrite = 0 } = used;
    const cached = cacheRead + cacheWrite ? `, ${number(cacheRead + cacheWrite)} through the cache` : "";
    usage.textContent = `${number(read)} tokens in, ${number(out)} out${cached}`;
    usage.title = `From the cache ${number(cacheRead)}, into the cache ${number(cacheWrite)}`;
  }

  function tick() {
    const done = frame.get("status") !== "running";
    const seconds = done ? frame.get("elapsed_s") : (Date.now() - Date.parse(frame.get("started_at"))) / 1000;
    elapsed.textContent = duration(seconds || 0);
  }

  function words() {
    const status = frame.get("status");
    return WORDS[status] ?? status;
  }

  return { element, update, words, dispose: () => clearInterval(clock) };
}

/** `0.4 s`, `12 s`, `3 min 5 s` */
export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (seconds > 0 && seconds < 10 && seconds !== whole) return `${seconds.toFixed(1)} s`;
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
