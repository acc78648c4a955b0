import { expect, test } from "vitest";
import { openFrame } from "../src/frame.js";
import { versionDiff } from "../src/diff/view.js";
import { fakeModel } from "./model.js";

const AT = "2026-11-30T09:21:05Z";
export const row = (n, operation = "modified", more = [null, null]) =>
  [`memver_${n}`, n, operation, "/a.md", "session_actor", "sesn_9", AT, 4, "abcdef12", ...more];
export const VIEW = {
  old: "memver_2", new: "memver_3", ignore_whitespace: false, context: 3, start: 0, next: null, total: 3,
  added: 1, removed: 1, places: 1, notes: [],
  rows: [["=", 1, 1, "same"], ["~", 2, 2, [[0, "a "], [1, "b"]], [[0, "a "], [1, "c"]]], ["f", 3, 3, 40]],
};

export function open(state = {}) {
  const el = document.createElement("div");
  document.body.append(el);
  const model = fakeModel({
    kind: "diff", path: "/a.md", versions: [row(1, "created"), row(2), row(3)], total: 3, first: 1,
    new: "memver_3", old: "prev", view: VIEW, mode: "auto", words: true, fold: true, context: 3,
    ignore_whitespace: false, wrap: true, readonly: false, as_of: AT, ...state,
  });
  const frame = openFrame({ model, el });
  versionDiff(frame);
  return { model, frame, root: frame.root };
}

test("the first pair is painted from the state, without a request", () => {
  const { root, model } = open();
  expect(root.querySelector("del").textContent).toBe("b");
  expect(root.querySelector("ins").textContent).toBe("c");
  expect(root.querySelector(".mk-stats").textContent).toBe("+1 −1 in 1 place");
  expect(model.sent).toEqual([]);
});
