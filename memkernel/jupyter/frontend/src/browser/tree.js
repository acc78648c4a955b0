import { h, plain, text } from "../dom.js";
import { ago, moment, number, size } from "../format.js";
import { above, filtered, rowsOf, treeOf } from "./paths.js";
import { windowed } from "./windowed.js";

const ROW_PX = 24;
const OPEN_AT_FIRST = 40; // a store with fewer rows than this is shown with all its directories open

/**
 * The memories as a tree, or, with a filter, as the list of those whose paths hold its words.
 *
 * @param {object} desk what the browser's panes share (store_view.js)
 * @returns {{element: HTMLElement, update: () => void, filter: (words: string) => void, reveal: (key: string) => void}}
 */
export function treePane(desk) {
  const open = new Set();
  let root = treeOf([]);
  let words = "";
  let first = true;
  let deleted = null; // the memories that are shown instead of those that live
  const list = windowed({
    role: "tree",
    label: "Memories",
    rowPx: ROW_PX,
    draw: (row) => treeRow(row, desk),
    onMove: ({ node }, _, how) => how === "key" && node.memory && !node.memory.deleted && desk.look(node.key),
    onOpen: (row, _, how) => enter(row, how),
    onKey,
  });

  function rows() {
    if (deleted) return filtered(deleted, words);
    return words ? filtered(desk.memories.all(), words) : rowsOf(root, open);
  }

  function enter(row, how) {
    const { key, memory } = row.node;
    if (!memory) toggle(row);
    else if (memory.deleted) desk.showHistory(memory);
    else desk.open(key, how);
  }

  function paint(key = list.items[list.active]?.node.key) {
    const next = rows();
    list.set(next, next.findIndex(({ node }) => node.key === key));
  }

  function toggle({ node, open: isOpen }) {
    if (isOpen) open.delete(node.key);
    else open.add(node.key);
    paint(node.key);
  }

  function onKey(event, row, index) {
    if (!row) return false;
    if (event.key === "ArrowRight" && row.open === false) toggle(row);
    else if (event.key === "ArrowRight" && row.open) list.move(index + 1, "key");
    else if (event.key === "ArrowLeft" && row.open) toggle(row);
    else if (event.key === "ArrowLeft") toParent(row, index);
    else if (event.key === " ") enter(row, "key");
    else return false;
    return true;
  }

  function toParent(row, index) {
    for (let up = index - 1; up >= 0; up -= 1) if (list.items[up].level < row.level) return list.move(up, "key");
    return undefined;
  }

  function openFirst() {
    if (!first || !root.count || root.count < desk.memories.total()) return;
    first = false;
    const all = new Set();
    const walk = (node) => node.children?.forEach((child) => child.children && all.add(child.key) && walk(child));
    walk(root);
    if (root.count + all.size <= OPEN_AT_FIRST) for (const key of all) open.add(key);
    else if (root.children.filter((child) => child.children).length === 1) open.add(root.children[0].key);
  }

  return {
    element: list.element,
    list,
    update() {
      root = treeOf(desk.memories.all());
      openFirst();
      paint();
    },
    paint: () => list.paint(),
    /** Show deleted memories instead; null goes back to those that live. */
    showDeleted(memories) {
      deleted = memories;
      paint();
    },
    filter(next) {
      words = next.trim();
      paint();
      return list.items.length;
    },
    /** Open the directories above a memory and bring its row into sight. */
    reveal(key) {
      for (const directory of above(key)) open.add(directory);
      paint(key);
      list.reveal(list.active);
    },
    focus() {
      list.element.focus();
      if (list.active < 0) list.move(0);
    },
    dispose: list.dispose,
  };
}

function treeRow({ node, level, place, siblings, open }, desk) {
  const { memory } = node;
  const facts = memory
    ? h("span", { class: "mk-row-end", title: updated(memory) }, memory.deleted ? moment(memory.updatedAt) : size(memory.size))
    : h("span", { class: "mk-row-end" }, number(node.count));
  const name = h("span", { class: "mk-row-name", title: memory ? plain(memory.path) : node.key }, ...text(node.name));
  const draft = desk.drafts.has(node.key);
  return h(
    "div",
    {
      class: `mk-row mk-level-${Math.min(level, 12)} ${memory ? "mk-leaf" : open ? "mk-open" : "mk-shut"}`,
      role: "treeitem",
      "aria-level": level,
      "aria-setsize": siblings,
      "aria-posinset": place,
      "aria-expanded": open === null ? null : String(open),
      "aria-selected": String(node.key === desk.selected()),
    },
    name,
    draft ? h("span", { class: "mk-tag" }, "not saved") : null,
    facts,
  );
}

function updated({ updatedAt, deleted }) {
  return `${deleted ? "deleted" : "changed"} ${moment(updatedAt)} UTC, ${ago(updatedAt)}`;
}
