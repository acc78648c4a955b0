import { h, plain, text } from "../dom.js";
import { moment, number, size } from "../format.js";
import { above, filtered, rowsOf, treeOf } from "./paths.js";
import { windowed } from "./windowed.js";

const ROW_PX = 24;
const FEW = 40; // a store of so few memories is shown with all its directories open

/** The memories as a tree, or, with a filter, as the list of those whose paths hold its words. */
export function treePane(desk) {
  const open = new Set();
  let root = treeOf([]);
  let words = "";
  let fresh = true;
  const list = windowed(ROW_PX, "tree", "Memories", {
    draw: (row) => treeRow(row, open, desk.selected()),
    look: ({ node }) => node.memory && desk.look(node.key),
    open: enter,
    key: onKey,
  });

  function paint(key = list.active()?.node.key) {
    const rows = words ? filtered(desk.memories.all(), words) : rowsOf(root, open);
    list.set(rows, ({ node }) => node.key === key);
    return rows.length;
  }

  function enter({ node }, how) {
    if (node.memory) desk.open(node.key, how);
    else if (open.delete(node.key) || open.add(node.key)) paint(node.key);
  }

  function onKey({ key }, row, index) {
    if (!row) return false;
    const isOpen = open.has(row.node.key);
    if (key === "ArrowRight" && isOpen) list.move(index + 1);
    else if (key === "ArrowLeft" && !isOpen) list.move(list.items().findLastIndex(isParentOf(row, index)));
    else if (key === (isOpen ? "ArrowLeft" : "ArrowRight") && row.node.children) enter(row);
    else return false;
    return true;
  }

  return {
    element: list.element,
    paint: list.paint,
    dispose: list.dispose,
    update() {
      root = treeOf(desk.memories.all());
      if (fresh && root.count < FEW) for (const { key } of inner(root)) open.add(key);
      fresh = !root.count;
      return paint();
    },
    filter(next) {
      words = next;
      return paint();
    },
    /** Open the directories above a memory and bring its row into sight. */
    reveal(key) {
      for (const directory of above(key)) open.add(directory);
      paint(key);
      if (list.active()) list.move(list.items().indexOf(list.active()));
    },
    focus() {
      list.element.focus();
      if (!list.active()) list.move(0);
    },
  };
}

/** A directory and those inside of it. */
function inner(node) {
  return node.children ? [node, ...node.children.flatMap(inner)] : [];
}

function isParentOf({ level }, below) {
  return (each, index) => index < below && each.level < level;
}

function treeRow({ node, level, place, siblings }, open, selected) {
  const { key, name, memory, count } = node;
  const isOpen = memory ? null : String(open.has(key));
  const row = h(
    "div.mk-entry",
    {
      role: "treeitem",
      title: memory ? `${plain(memory.path)}, ${moment(memory.updatedAt)}` : key,
      "aria-level": level,
      "aria-setsize": siblings,
      "aria-posinset": place,
      "aria-expanded": isOpen,
      "aria-selected": String(key === selected),
    },
    h("span.mk-name", ...text(name)),
    h("span.mk-end", memory ? (memory.size === null ? "deleted" : size(memory.size)) : number(count)),
  );
  row.style.setProperty("--level", level);
  return row;
}
