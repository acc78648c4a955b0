import { version as record } from "../records.js";

const NEAR = 100;

/**
 * The versions of one memory as far as the page knows them, by ordinal. The others come when they are looked at.
 *
 * @param {(version: string, before: number) => Promise<{versions: Array, total: number, first: number}>} ask
 */
export function history(ask) {
  const known = new Map();
  let first = 1;
  let last = 0;

  function take(rows, { total = 0, first: oldest = first } = {}) {
    for (const row of rows) known.set(row[1], record(row));
    first = oldest; // pruning takes the oldest versions away
    last = Math.max(last, total, ...rows.map((row) => row[1]));
  }

  const all = () => [...known.values()].sort((one, other) => one.ordinal - other.ordinal);

  /** Know this version, and those around it. */
  async function load(ordinal) {
    if (!known.has(ordinal)) {
      const answer = await ask(all()[0].id, Math.min(last, ordinal + NEAR) + 1);
      take(answer.versions, answer);
    }
    if (!known.has(ordinal)) throw new Error(`@${ordinal} is not there any more`);
  }

  return {
    ...{ take, all, load },
    at: (ordinal) => known.get(ordinal),
    first: () => first,
    last: () => last,
  };
}
