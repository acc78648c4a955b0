import { diffPanel } from "../diff/panel.js";
import { aria, h, plain, replace } from "../dom.js";
import { asking } from "./asking.js";
import { contentPane } from "./content.js";
import { deskOf } from "./desk.js";
import { editor } from "./editor.js";
import { header } from "./header.js";
import { searchPane } from "./search.js";
import { timelinePane } from "./timeline.js";
import { treePane } from "./tree.js";

/**
 * One store: tree, content and history side by side, one at a time where it is narrow, and a diff below.
 *
 * @returns {() => void} ends it
 */
export function storeView(outer) {
  const ending = [];
  const frame = { ...outer, on: (name, fn) => ending.push(outer.on(name, fn)) };
  const desk = deskOf(frame);
  const questions = asking(frame);
  const edit = editor(desk, questions);
  const [tree, content, timeline] = [treePane(desk), contentPane(desk, questions, edit), timelinePane(desk)];
  const [search, head, below] = [searchPane(desk, tree.element), header(desk), h("div")];
  const left = h("div.mk-pane.mk-memories", tree.element, search.element);
  const columns = h("div.mk-columns", left, content.element, timeline.element);
  columns.style.height = `${frame.get("height")}px`;
  desk.attach({ questions, edit, tree, content, timeline, search, head, diff: diffSlot(frame, below) });
  replace(frame.body, head.element, tabs(frame), columns, below);
  aria(frame.root, "label", `Memory store ${plain(frame.get("store_name"))}`);
  ending.push(frame.keys(keysOf(desk, head, edit, timeline)), tree.dispose, timeline.dispose);
  desk.start();
  return () => ending.forEach((end) => end());
}

function tabs(frame) {
  const names = ["memories", "content", "history"];
  const buttons = names.map((name) => frame.button(name, name, () => frame.set("tab", name)));
  const paint = () => {
    const tab = (frame.root.dataset.tab = frame.get("tab") || names[0]);
    buttons.forEach((each, index) => aria(each, "pressed", names[index] === tab));
  };
  frame.on("tab", paint);
  paint();
  return h("div.mk-bar.mk-tabs", buttons);
}

/** The diff below the columns: made when it is first asked for. */
function diffSlot(frame, below) {
  let panel = null;

  function close() {
    panel?.dispose();
    panel = null;
    replace(below);
  }

  return {
    close,
    isOpen: () => panel,
    show(pair) {
      if (panel) return panel.show(pair);
      panel = diffPanel(frame, { ...pair, onClose: close });
      replace(below, panel.element);
      below.scrollIntoView({ block: "nearest" });
    },
  };
}

function keysOf(desk, head, edit, timeline) {
  return {
    "/": ["Search", () => head.box.focus()],
    "Ctrl+Enter": ["Search the contents", desk.search],
    e: ["Edit", desk.edit],
    "Ctrl+s": ["Save", () => edit.title() && edit.save()],
    Escape: ["Leave the editor, the diff or the search", desk.leave],
    c: ["Mark a version as the base", () => desk.markBase(timeline.active())],
    d: ["Compare a version", () => desk.compareWith(timeline.active())],
  };
}
