import { expect, test, vi } from "vitest";
import { pairCache } from "../src/diff/pairs.js";

const question = (old, fresh, more = {}) => ({ old, new: fresh, ignore_whitespace: false, context: 3, ...more });

test("a pair is asked for once, also by two who ask at once", async () => {
  const ask = vi.fn(async () => ({ rows: [] }));
  const pairs = pairCache(ask);
  const [one, other] = await Promise.all([pairs.get(question("a", "b")), pairs.get(question("a", "b"))]);
  expect(one).toBe(other);
  expect(ask).toHaveBeenCalledTimes(1);
});

test("another context or white space is another question", async () => {
  const ask = vi.fn(async () => ({ rows: [] }));
  const pairs = pairCache(ask);
  await pairs.get(question("a", "b"));
  await pairs.get(question("a", "b", { context: null }));
  await pairs.get(question("a", "b", { ignore_whitespace: true }));
  expect(ask).toHaveBeenCalledTimes(3);
});

test("the pairs looked at last are kept", async () => {
  const ask = vi.fn(async () => ({ rows: [] }));
  const pairs = pairCache(ask, 2);
  for (const fresh of ["b", "c", "b", "d"]) await pairs.get(question("a", fresh));
  expect(["b", "c", "d"].map((fresh) => pairs.has(question("a", fresh)))).toEqual([true, false, true]);
});

test("a question that failed is asked again", async () => {
  const ask = vi.fn().mockRejectedValueOnce(new Error("no")).mockResolvedValueOnce({ rows: [] });
  const pairs = pairCache(ask);
  await expect(pairs.get(question("a", "b"))).rejects.toThrow("no");
  await expect(pairs.get(question("a", "b"))).resolves.toEqual({ rows: [] });
});

test("a view grows in the page without changing what came in the state", async () => {
  const state = { ...question("a", "b"), rows: [["f", 1, 1, 9]] };
  const pairs = pairCache(() => undefined);
  pairs.put(state, state);
  const view = await pairs.get(question("a", "b"));
  view.rows.push("more");
  expect(state.rows).toHaveLength(1);
});
