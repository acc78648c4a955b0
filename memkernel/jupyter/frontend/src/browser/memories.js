import * as records from "../records.js";
import { rawPath } from "./paths.js";

/**
 * The memories of the store: the first of them are in the state, the rest is asked for after the first paint.
 *
 * @param {(memories: Array, whole: boolean) => void} onChange
 * @returns {{all: () => Array, total: () => number, find: (key: string) => object|undefined, load: () => void}}
 */
export function memoriesOf(frame, onChange) {
  let all = [];
  let loads = 0;

  async function load() {
    const turn = (loads += 1);
    const found = frame.get("memories").map(named);
    // While the rest of a list that was whole before is on its way, the old one stays: no row jumps away and back.
    if (found.length >= all.length || found.length >= frame.get("total")) tell(found);
    while (found.length < frame.get("total")) {
      const page = await frame.attempt("List the memories", () =>
        frame.call("memories_after", { after: found.at(-1)?.key ?? "" }),
      );
      if (turn !== loads || !page) return;
      found.push(...page.memories.map(named));
      if (page.next === null || page.memories.length === 0) break;
      if (found.length > all.length) tell([...found]);
    }
    tell(found);
  }

  function tell(memories) {
    all = memories;
    onChange(all);
  }

  frame.on("memories", load);
  return {
    load,
    all: () => all,
    total: () => Math.max(frame.get("total"), all.length),
    find: (key) => all.find((memory) => memory.key === key),
  };
}

/** A memory of a row, with its raw path as `key`. */
export function named(row) {
  const memory = records.memory(row);
  return { ...memory, key: rawPath(memory.path) };
}
