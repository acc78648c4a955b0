import { plain } from "../dom.js";

const CODE_POINT = /^U\+([0-9A-F]{4,6})/;
const collator = new Intl.Collator("en", { numeric: true });

/** A path as it is stored: a mark's title begins with the character that it stands for. */
export function rawPath(marked) {
  if (typeof marked === "string") return marked;
  return marked.map((piece) => (typeof piece === "string" ? piece : character(piece[1]) ?? piece[0])).join("");
}

function character(title) {
  const found = CODE_POINT.exec(title);
  return found && String.fromCodePoint(parseInt(found[1], 16));
}

/** The last part of a marked path, marked. */
export function lastPart(marked) {
  if (typeof marked === "string") return marked.slice(marked.lastIndexOf("/") + 1);
  let from = marked.length - 1;
  while (from > 0 && !(typeof marked[from] === "string" && marked[from].includes("/"))) from -= 1;
  const [first, ...rest] = marked.slice(from);
  return [typeof first === "string" ? first.slice(first.lastIndexOf("/") + 1) : first, ...rest];
}

/**
 * Memories as a tree: directories first, then by name with numbers in their order.
 *
 * @param {Array<{path: *, key: string, size: number, updatedAt: string}>} memories `path` marked, `key` raw
 * @returns {{children: Array, count: number}} nodes `{key, name, memory?, children?, count?}`
 */
export function treeOf(memories) {
  const root = directory("", "");
  for (const memory of memories) {
    const parts = memory.key.split("/").slice(1);
    let at = root;
    for (const part of parts.slice(0, -1)) at = entered(at, part);
    at.children.push({ key: memory.key, name: lastPart(memory.path), sort: parts.at(-1), memory });
    for (let up = at; up; up = up.parent) up.count += 1;
  }
  return sorted(root);
}

function directory(key, name, parent = null) {
  return { key, name, sort: name, parent, children: [], inside: new Map(), count: 0 };
}

function entered(at, part) {
  if (!at.inside.has(part)) {
    const child = directory(`${at.key}/${part}`, part, at);
    at.inside.set(part, child);
    at.children.push(child);
  }
  return at.inside.get(part);
}

function sorted(node) {
  node.children.sort((a, b) => Boolean(b.children) - Boolean(a.children) || collator.compare(a.sort, b.sort));
  for (const child of node.inside.values()) sorted(child);
  return node;
}

/**
 * The rows of a tree that can be seen, each with its place: `{node, level, place, siblings, open}`.
 *
 * @param {Set<string>} open the keys of the directories that are open
 */
export function rowsOf(root, open) {
  const rows = [];
  const walk = (node, level) => {
    node.children.forEach((child, index) => {
      const isOpen = child.children ? open.has(child.key) : null;
      rows.push({ node: child, level, place: index + 1, siblings: node.children.length, open: isOpen });
      if (isOpen) walk(child, level + 1);
    });
  };
  walk(root, 1);
  return rows;
}

/** The rows of the memories whose paths hold every word of the filter, whatever its case. */
export function filtered(memories, filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = memories.filter(({ path }) => {
    const text = plain(path).toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return found.map((memory, index) => ({
    node: { key: memory.key, name: memory.path, memory },
    level: 1,
    place: index + 1,
    siblings: found.length,
    open: null,
  }));
}

/** The directories above a path, outermost first. */
export function above(key) {
  const parts = key.split("/").slice(1, -1);
  return parts.map((_, index) => `/${parts.slice(0, index + 1).join("/")}`);
}
