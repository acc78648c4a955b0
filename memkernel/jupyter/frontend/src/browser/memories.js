import * as records from "../records.js";

/**
 * The memories of the store: the first of them are in the state, the rest is asked for after the first paint.
 *
 * @param {() => void} onChange
 * @returns {{load: () => void, all: () => Array}} memories with `key`, their path as it is stored
 */
export function memoriesOf(frame, onChange) {
  let all = [];
  let loads = 0;

  async function load() {
    const turn = (loads += 1);
    const found = frame.get("memories").map(named);
    while (true) {
      // What was whole before stays until the rest has come as well: no row jumps away and back.
      const whole = found.length >= frame.get("total");
      if (whole || found.length > all.length) tell([...found]);
      if (whole) return;
      const page = await frame.attempt("List the memories", () =>
        frame.call("memories_after", { after: found.at(-1)?.key ?? "" }),
      );
      if (turn !== loads || !page) return;
      found.push(...page.memories.map(named));
      if (page.next === null) return tell(found);
    }
  }

  function tell(memories) {
    all = memories;
    onChange();
  }

  frame.on("memories", load);
  return { load, all: () => all };
}

function named(row) {
  return { ...records.memory(row), key: row[4] ?? row[0] };
}
