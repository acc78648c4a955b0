import { diffPanel } from "../diff/panel.js";
import { h, plain, replace } from "../dom.js";
import { memoryActions } from "./actions.js";
import { asking } from "./asking.js";
import { contentPane } from "./content.js";
import { deletedSwitch } from "./deleted.js";
import { deskOf } from "./desk.js";
import { editor } from "./editor.js";
import { header } from "./header.js";
import { memoriesOf } from "./memories.js";
import { searchPane } from "./search.js";
import { timelinePane } from "./timeline.js";
import { treePane } from "./tree.js";

const TABS = [
  ["memories", "Memories"],
  ["content", "Content"],
  ["history", "History"],
];

/**
 * One store: tree, content and history side by side, one at a time where it is narrow, and a diff below.
 *
 * @returns {() => void} ends it
 */
export function storeView(frame) {
  const ending = [];
  const scoped = { ...frame, on: (name, fn) => ending.push(frame.on(name, fn)) };
  const desk = deskOf(scoped);
  const view = assembled(scoped, desk);
  desk.attach(view);
  replace(frame.body, view.head.element, tabs(scoped), view.columns, view.below);
  frame.root.setAttribute("aria-label", `Memory store ${plain(frame.get("store_name"))}`);
  ending.push(frame.keys(keysOf(desk, view)), view.tree.dispose, view.timeline.dispose);
  desk.start();
  return () => ending.forEach((end) => end?.());
}

function assembled(frame, desk) {
  const questions = asking(frame);
  const edit = editor(desk, questions, { onLeave: () => desk.reread(), onSaved: (key) => desk.open(key, "key") });
  const tree = treePane(desk);
  const search = searchPane(desk, () => (tree.element.hidden = false));
  const content = contentPane(desk, { questions, editor: edit, actions: memoryActions(desk, questions) });
  const timeline = timelinePane(desk);
  const left = h("div", { class: "mk-pane mk-left" }, tree.element, search.element, deletedSwitch(desk, tree));
  const columns = h("div", { class: "mk-columns" }, left, content.element, timeline.element);
  const below = h("div", { class: "mk-below", hidden: true });
  columns.style.setProperty("--height", `${frame.get("height")}px`);
  return { questions, edit, tree, search, content, timeline, columns, below, head: header(desk), diff: diffSlot(frame, below) };
}

function tabs(frame) {
  const buttons = TABS.map(([name, label]) => {
    return frame.button(label, `Show ${label.toLowerCase()}`, () => frame.set("tab", name), { "data-tab": name });
  });
  const paint = () => {
    frame.root.dataset.tab = frame.get("tab") || "memories";
    for (const each of buttons) each.setAttribute("aria-pressed", String(each.dataset.tab === frame.root.dataset.tab));
  };
  frame.on("tab", paint);
  paint();
  return h("div", { class: "mk-tabs", role: "group", "aria-label": "What is shown" }, ...buttons);
}

/** The diff below the columns: made when it is first asked for. */
function diffSlot(frame, below) {
  let panel = null;

  function close() {
    panel?.dispose();
    panel = null;
    below.hidden = true;
    replace(below);
  }

  return {
    close,
    isOpen: () => panel !== null,
    show(pair) {
      close();
      below.hidden = false;
      panel = diffPanel(frame, { ...pair, onClose: close });
      replace(below, h("div", { class: "mk-below-title" }, `${pair.title}: ${pair.names.join(" → ")}`), panel.element);
      below.scrollIntoView?.({ block: "nearest" });
      frame.say(`Comparing ${pair.names.join(" with ")}, below`);
    },
  };
}

function keysOf(desk, view) {
  return {
    "/": ["Search", () => view.head.focus()],
    "Ctrl+Enter": ["Search the contents for what is in the search box", () => desk.search()],
    e: ["Edit the memory", () => desk.edit()],
    "Ctrl+s": ["Save", () => view.edit.isOpen() && view.edit.save()],
    Escape: ["Leave the editor, the search or the diff", () => desk.leave()],
    c: ["Mark the version as the base, or unmark it", () => desk.markBase(view.timeline.active())],
    d: ["Compare the version with the base, or with the one before", () => desk.compareWith(view.timeline.active())],
  };
}
