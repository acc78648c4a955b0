import { aria, h } from "../dom.js";

/** The line above: who answers, how far it is, what it used, and Stop. Its words come from Python (run_standing.py). */
export function runHead(frame) {
  const [status, progress, spent] = [h("b.mk-tag"), h("span"), h("span")];
  const turns = h("progress", { max: frame.get("max_turns"), "aria-label": "Turns" });
  const budget = h("progress", { "aria-label": "Budget" });
  const stop = frame.button("", "", askToStop, { class: "mk-button mk-danger", "aria-label": null });
  const title = frame.get("title");
  const element = h(
    "div.mk-bar",
    h("span.mk-title", frame.get("model")),
    title ? `on ${title}` : null,
    status,
    frame.get("badge") ? h("span.mk-tag", frame.get("badge")) : null,
    stop,
    h("span.mk-run-used", turns, progress),
    h("span.mk-gap"),
    h("span.mk-run-used", budget, spent),
  );
  let said; // the level of the budget that was spoken of last
  frame.root.dataset.run = frame.get("run_id");
  const clock = setInterval(tick, 1000);
  frame.onClose(() => clearInterval(clock));

  async function askToStop() {
    stop.disabled = true;
    offer();
    if (await frame.attempt("Stop", async () => (await frame.call("stop"), true))) return;
    stop.disabled = false;
    offer();
  }

  function offer() {
    const [label, title, asked] = frame.get("words").stop;
    stop.textContent = stop.disabled ? asked : label;
    stop.title = title;
  }

  function update() {
    const words = frame.get("words");
    const [part, level, used] = frame.get("usage").budget ?? [];
    status.textContent = words.status;
    spent.textContent = `${words.cost} · ${words.usage}`;
    offer();
    turns.value = frame.get("turn");
    turns.hidden = !frame.get("max_turns");
    stop.hidden = !isGoing(frame);
    budget.hidden = !used;
    frame.root.dataset.status = frame.get("status");
    warn(part, level, used);
    tick();
  }

  /** The words are said once for each level. */
  function warn(part, level, used) {
    if (!used) return;
    budget.value = part;
    budget.title = used;
    aria(budget, "valuetext", used);
    budget.dataset.level = level;
    if (level === "fine" || level === said) return;
    if (frame.get("status") === "waiting") return; // a question is not talked over
    said = level;
    frame.say(used);
  }

  function tick() {
    const since = Math.max(0, Math.floor((Date.now() - Date.parse(frame.get("started_at"))) / 1000));
    const { turn, time } = frame.get("words");
    progress.textContent = `${turn} · ${duration(frame.get("elapsed_s") || since)}${time}`;
  }

  return { element, update };
}

/** Whether it goes on: it is stopped, and answered, no later. */
export const isGoing = (frame) => /^(runn|wait)ing$/.test(frame.get("status"));

/** `0.4 s`, `12 s`, `3 min 5 s` */
export function duration(seconds) {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}
