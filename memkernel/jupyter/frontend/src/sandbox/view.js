import { h, plain, replace } from "../dom.js";
import { counted } from "../format.js";
import { actionsOf } from "./actions.js";
import { entryItem } from "./cells.js";
import { comparisons, versionPart } from "./comparing.js";
import { conflictItem } from "./conflicts.js";
import { keyed } from "./keyed.js";
import { heldBackLine, mountTable } from "./mounts.js";
import { makeParts } from "./parts.js";
import { changeOf, conflictOf, entryOf, mountOf } from "./rows.js";

const TRAITS = ["status", "sentence", "mounts", "cells", "changes", "left_out", "conflicts", "put_aside", "readonly"];
const STATES = { running: "running", busy: "busy", dead: "dead", lost: "gone", stopped: "stopped" };

/** A sandbox: how it stands, its stores, what was put aside, and its cells with what became of their files. */
export function sandboxPanel(frame) {
  const parts = makeParts(frame);
  const asking = h("div", {});
  const tell = (words) => {
    parts.said.hidden = !words;
    parts.said.textContent = words;
    frame.say(words);
  };
  const actions = actionsOf(frame, { asking, tell });
  const painters = [
    headPainter(frame, parts, actions),
    mountPainter(frame, parts, actions),
    textPainter(frame, parts, tell),
  ];
  const paint = () => {
    for (const one of painters) one();
    frame.ready(`${frame.get("status")}:${frame.get("cells").length}:${frame.get("put_aside")}`);
  };

  frame.root.setAttribute("aria-label", `Sandbox ${plain(frame.get("name"))}`);
  frame.body.classList.add("mk-sandbox");
  const { bar, said, limits, held, mounts, aside, log } = parts;
  replace(frame.body, bar, asking, said, limits, held, mounts, aside, log);
  const paintSoon = once(paint);
  for (const name of TRAITS) frame.on(name, paintSoon);
  paint();
}

/** Many traits change at once; one paint is enough. */
function once(paint) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      paint();
    });
  };
}

function headPainter(frame, parts, actions) {
  return () => {
    const status = frame.get("status");
    parts.sentence.textContent = frame.get("sentence");
    parts.state.textContent = STATES[status];
    parts.state.dataset.status = status;
    replace(parts.buttons, frame.get("readonly") ? null : actions.buttons(status));
  };
}

function mountPainter(frame, parts, actions) {
  return () => {
    const mayAct = actions.may(frame.get("status")) && !frame.get("readonly");
    const mounts = frame.get("mounts").map(mountOf);
    replace(parts.mounts, mountTable(mounts, (mount) => (mayAct ? actions.reset(mount) : null)));
    const held = mounts.filter((mount) => mount.heldBack);
    replace(parts.held, held.map((mount) => heldBackLine(mount, mayAct ? actions.deleteHeldBack() : null)));
  };
}

/** What was put aside, and the cells: both have differences that stay open while the rest is drawn anew. */
function textPainter(frame, parts, tell) {
  const compare = comparisons(frame);
  const say = newsOf(frame);

  function paintConflicts(conflicts) {
    const total = frame.get("put_aside");
    const more = total - conflicts.length;
    const how = { compare, readonly: frame.get("readonly"), done: tell };
    parts.aside.hidden = !conflicts.length;
    parts.asideTitle.textContent = `Put aside (${total})`;
    parts.asideMore.textContent = more > 0 ? `${counted(more, "earlier one")}: %sandbox changes lists them.` : "";
    keyed(parts.asideList, conflicts, (conflict) => conflictItem(frame, conflict, how));
  }

  function paintCells(changes) {
    const isNamed = frame.get("mounts").length > 1;
    const how = { isNamed, compare: (change) => versionPart(compare, change, isNamed) };
    const entries = frame.get("cells").map(entryOf).map((entry) => ({
      ...entry,
      changes: changes.filter((change) => change.entry === entry.key),
    }));
    const left = frame.get("left_out");
    keyed(parts.entries, entries, (entry) => entryItem(entry, how));
    parts.none.hidden = entries.length > 0;
    parts.more.textContent = left ? `${counted(left, "earlier one")}, not shown here` : "";
    say(entries[0]);
  }

  return () => {
    const conflicts = frame.get("conflicts").map(conflictOf).map((each) => ({ ...each, key: each.id }));
    const changes = frame.get("changes").map(changeOf);
    compare.forget(new Set([...conflicts.map(({ id }) => id), ...changes.map(({ version }) => version)]));
    paintConflicts(conflicts);
    paintCells(changes);
  };
}

/** What a cell came to is said aloud; not what was there before. */
function newsOf(frame) {
  let last = null;
  return (newest) => {
    const now = newest ? `${newest.key} ${newest.status}` : "";
    if (newest && last !== null && now !== last) frame.say(`${newest.title} ${newest.words}`);
    last = now;
  };
}
