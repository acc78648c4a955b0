import { diffPanel } from "../src/diff/panel.js";
import { versionDiff } from "../src/diff/view.js";
import { openFrame } from "../src/frame.js";
import { fakeModel } from "./model.js";

const AT = "2026-11-30T09:21:05Z";

/** A version as it travels (widgets/rows.py). */
export function versionRow(ordinal, operation = "modified", redaction = [null, null]) {
  const actor = ["session_actor", "sesn_9"];
  return [`memver_${ordinal}`, ordinal, operation, "/a.md", ...actor, AT, 4, "abcdef12", ...redaction];
}

/** An answer to `diff`. */
export function view(old, fresh, more = {}) {
  return {
    old: old && `memver_${old}`,
    new: `memver_${fresh}`,
    ignore_whitespace: false,
    context: 3,
    start: 0,
    next: null,
    total: 3,
    added: 1,
    removed: 1,
    places: 1,
    notes: [],
    made: [],
    summary: "+1 −1 in 1 place",
    said: "1 line added, 1 removed in 1 place",
    names: [old ? `@${old}` : "nothing", `@${fresh}`],
    rows: [
      ["=", 1, 1, "same"],
      ["~", 2, 2, [[0, "a "], [1, "b"]], [[0, "a "], [1, "c"]]],
      ["f", 3, 3, 40],
    ],
    ...more,
  };
}

export function openDiff(state = {}) {
  const model = fakeModel({
    kind: "diff",
    path: "/a.md",
    versions: [versionRow(1, "created"), versionRow(2), versionRow(3), versionRow(4)],
    total: 4,
    first: 1,
    index: 2,
    base: "prev",
    view: view(2, 3),
    mode: "auto",
    word_level: true,
    fold: true,
    context: 3,
    ignore_ws: false,
    wrap: true,
    readonly: false,
    as_of: AT,
    ...state,
  });
  const frame = frameOf(model);
  versionDiff(frame);
  return { model, frame, root: frame.root };
}

export function openPanel(pair, model = fakeModel({ as_of: AT })) {
  const frame = frameOf(model);
  const panel = diffPanel(frame, { old: "memver_2", new: "memver_3", title: "/a.md", ...pair });
  frame.body.append(panel.element);
  return { model, frame, panel, root: frame.root };
}

export function frameOf(model) {
  const el = document.createElement("div");
  document.body.append(el);
  return openFrame({ model, el });
}

/** What is in the event queue, also of promises. */
export function settled() {
  return new Promise((resolve) => setTimeout(resolve));
}

export function press(target, key, more = {}) {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  target.dispatchEvent(event);
  return event;
}

export function button(root, name) {
  const named = (each) => (each.getAttribute("aria-label") ?? each.textContent) === name;
  const found = [...root.querySelectorAll("button")].find(named);
  if (!found) throw new Error(`no button ${name}`);
  return found;
}

export function said(root) {
  return root.querySelector("[role=status]").textContent;
}
