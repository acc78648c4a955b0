/**
 * Memories in path order as a tree. A node is `{key, name, memory}` or, of a directory,
 * `{key, name, children, count}`.
 *
 * @param {Array<{key: string}>} memories `key` is the path as it is stored
 */
export function treeOf(memories) {
  const root = directory("", "");
  for (const memory of memories) {
    const parts = memory.key.split("/");
    let at = root;
    at.count += 1;
    for (const part of parts.slice(1, -1)) {
      at = entered(at, part);
      at.count += 1;
    }
    at.children.push({ key: memory.key, name: nameOf(memory, parts.at(-1)), memory });
  }
  return root;
}

function directory(key, name) {
  return { key, name, children: [], inside: new Map(), count: 0 };
}

function entered(at, part) {
  if (!at.inside.has(part)) {
    const child = directory(`${at.key}/${part}`, part);
    at.inside.set(part, child);
    at.children.push(child);
  }
  return at.inside.get(part);
}

/** Where some of a path cannot be seen, all of it is shown, with its marks. */
function nameOf({ path }, last) {
  return typeof path === "string" ? last : path;
}

/**
 * The rows of a tree that can be seen: `{node, level, place, siblings}`.
 *
 * @param {Set<string>} open the keys of the directories that are open
 */
export function rowsOf({ children }, open, level = 1) {
  return children.flatMap((node, index) => [
    { node, level, place: index + 1, siblings: children.length },
    ...(open.has(node.key) ? rowsOf(node, open, level + 1) : []),
  ]);
}

/** The memories whose paths hold every word of the filter, whatever its case, as rows. */
export function filtered(memories, filter) {
  const words = filter.toLowerCase().split(/\s+/);
  const children = memories
    .filter(({ key }) => words.every((word) => key.toLowerCase().includes(word)))
    .map((memory) => ({ key: memory.key, name: memory.path, memory }));
  return rowsOf({ children }, new Set());
}

/** The directories above a path, outermost first. */
export function above(key) {
  const parts = key.split("/");
  return parts.slice(1, -1).map((_, index) => parts.slice(0, index + 2).join("/"));
}
