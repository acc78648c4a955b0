import { question } from "../diff/dialogs.js";
import { h, plain, replace, text } from "../dom.js";
import { counted } from "../format.js";
import { entryItem } from "./cells.js";
import { comparisons, versionPart } from "./comparing.js";
import { conflictItem } from "./conflicts.js";
import { keyed } from "./keyed.js";
import { heldBackLine, mountTable } from "./mounts.js";
import { changeOf, conflictOf, entryOf, mountOf } from "./rows.js";

const TRAITS = ["status", "sentence", "mounts", "cells", "changes", "left_out", "conflicts", "put_aside", "readonly"];
const STATES = { running: "running", busy: "busy", dead: "kernel died", lost: "gone", stopped: "stopped" };

/** A sandbox: how it stands, its stores, what was put aside, and its cells with what became of their files. */
export function sandboxPanel(frame) {
  const compare = comparisons(frame);
  const parts = makeParts(frame);
  const asking = h("div", {});
  const said = h("p", { class: "mk-said", hidden: true });
  const actions = makeActions(frame, { asking, tell });
  let waiting = false;

  frame.root.setAttribute("aria-label", `Sandbox ${plain(frame.get("name"))}`);
  frame.body.classList.add("mk-sandbox");
  replace(frame.body, parts.bar, asking, said, parts.limits, parts.held, parts.mounts, parts.aside, parts.log);
  for (const name of TRAITS) frame.on(name, paintSoon);
  paint();

  /** Many traits change at once; one paint is enough. */
  function paintSoon() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      paint();
    });
  }

  function tell(words) {
    said.hidden = !words;
    said.textContent = words;
    frame.say(words);
  }

  function paint() {
    const status = frame.get("status");
    const readonly = frame.get("readonly");
    replace(parts.sentence, ...text(frame.get("sentence")));
    parts.state.textContent = STATES[status];
    parts.state.dataset.status = status;
    replace(parts.buttons, readonly ? null : actions.buttons(status));
    paintMounts(actions.may(status) && !readonly);
    paintConflicts(readonly);
    paintCells();
    frame.ready(`${status}:${frame.get("cells").length}:${frame.get("put_aside")}`);
  }

  function paintMounts(mayAct) {
    const mounts = frame.get("mounts").map(mountOf);
    replace(parts.mounts, mountTable(mounts, (mount) => (mayAct ? actions.reset(mount) : null)));
    const held = mounts.filter((mount) => mount.heldBack);
    replace(parts.held, held.map((mount) => heldBackLine(mount, mayAct ? actions.deleteHeldBack() : null)));
  }

  function paintConflicts(readonly) {
    const conflicts = frame.get("conflicts").map(conflictOf).map((each) => ({ ...each, key: each.id }));
    const more = frame.get("put_aside") - conflicts.length;
    parts.aside.hidden = !conflicts.length;
    parts.asideTitle.textContent = `Put aside (${frame.get("put_aside")})`;
    parts.asideMore.textContent = more > 0 ? `${counted(more, "earlier one")}: %sandbox changes lists them.` : "";
    const how = { compare, readonly, done: tell };
    keyed(parts.asideList, conflicts, (conflict) => conflictItem(frame, conflict, how));
    compare.forget(new Set([...conflicts.map(({ id }) => id), ...frame.get("changes").map((row) => changeOf(row).version)]));
  }

  function paintCells() {
    const changes = Map.groupBy?.(frame.get("changes").map(changeOf), ({ entry }) => entry) ?? grouped(frame.get("changes"));
    const isNamed = frame.get("mounts").length > 1;
    const entries = frame.get("cells").map(entryOf).map((entry) => ({ ...entry, changes: changes.get(entry.key) ?? [] }));
    const how = { isNamed, compare: (change) => versionPart(compare, change, isNamed) };
    keyed(parts.entries, entries, (entry) => entryItem(entry, how));
    parts.none.hidden = entries.length > 0;
    parts.more.textContent = frame.get("left_out") ? `${counted(frame.get("left_out"), "earlier one")}, not shown here` : "";
  }
}

function grouped(rows) {
  const groups = new Map();
  for (const change of rows.map(changeOf)) groups.set(change.entry, [...(groups.get(change.entry) ?? []), change]);
  return groups;
}

function makeParts(frame) {
  const state = h("span", { class: "mk-tag mk-badge" });
  const sentence = h("span", { class: "mk-sentence" });
  const buttons = h("span", { class: "mk-buttons" });
  const title = h("span", { class: "mk-title" }, "sandbox ", ...text(frame.get("name")));
  const asideTitle = h("h4", {});
  const asideList = h("ul", { class: "mk-conflicts" });
  const asideMore = h("p", { class: "mk-faint" });
  const entries = h("ul", { class: "mk-entries" });
  const none = h("p", { class: "mk-faint" }, "No cell has run yet.");
  const more = h("p", { class: "mk-faint" });
  return {
    ...{ state, sentence, buttons, asideTitle, asideList, asideMore, entries, none, more },
    bar: h("div", { class: "mk-bar" }, title, state, sentence, h("span", { class: "mk-gap" }), buttons),
    limits: limitsLine(frame),
    held: h("div", {}),
    mounts: h("div", { class: "mk-part mk-mounts-frame", role: "region", "aria-label": "Mounted stores", tabindex: "0" }),
    aside: h("div", { class: "mk-part mk-aside" }, asideTitle, asideList, asideMore),
    log: h("div", { class: "mk-part" }, h("h4", {}, "Cells, newest first"), none, cellsFrame(entries), more),
  };
}

function cellsFrame(entries) {
  return h("div", { class: "mk-log", role: "region", "aria-label": "Cells, newest first", tabindex: "0" }, entries);
}

function limitsLine(frame) {
  const limits = frame.get("limits").map(([name, value]) => h("span", {}, `${name} `, h("b", {}, ...text(value))));
  return h(
    "div",
    { class: "mk-part mk-limits" },
    h("div", { class: "mk-limits-line" }, limits),
    h("div", { class: "mk-faint" }, ...text(frame.get("isolation"))),
  );
}

function makeActions(frame, { asking, tell }) {
  const may = (status) => status === "running" || status === "dead";

  /** One request: the answer's sentence is told, a failure is a line with Retry. */
  function ask(what, method, params = {}) {
    return frame.attempt(what, async () => {
      tell(`${what} …`);
      try {
        const { said } = await frame.call(method, params);
        tell(said ? `${what}: ${said}` : "");
      } catch (error) {
        tell("");
        throw error;
      }
    });
  }

  function confirmed(label, sentence, action) {
    const asked = question(frame, asking, { label, danger: true });
    const go = () => {
      asked.close();
      return action();
    };
    asked.fill(h("span", {}, ...sentence), frame.button(label, label, go));
  }

  function stop() {
    confirmed("Stop the sandbox", ["Everything is saved first; what its variables hold is gone then. "], () => ask("Stop", "stop"));
  }

  return {
    may,
    buttons: (status) => [
      frame.button("Sync now", "Save what was changed here, bring what was changed in the stores", () => ask("Sync", "sync"), {
        disabled: !may(status),
      }),
      frame.button("Interrupt", "Interrupt the cell that runs", () => ask("Interrupt", "interrupt"), {
        disabled: status !== "busy",
      }),
      frame.button("Stop", "Save all and end the sandbox", stop, { disabled: status === "stopped" }),
      frame.button("⟳", "Look anew at the stores", () => ask("Look", "refresh"), { disabled: status === "stopped" }),
    ],
    reset: (mount) =>
      frame.button("Reset…", `Make ${mount.folder} equal to its store`, () =>
        confirmed(
          `Reset ${mount.slug}`,
          ["Make ", h("code", {}, mount.folder), " equal to its store? What is not saved there is put aside. "],
          () => ask(`Reset ${mount.slug}`, "reset", { store: mount.store }),
        ),
        { "aria-label": `Reset ${mount.slug}` },
      ),
    deleteHeldBack: () =>
      frame.button("Delete them after all", "Carry out the deletions that were held back", () =>
        ask("Delete", "delete_held_back"),
      ),
  };
}
