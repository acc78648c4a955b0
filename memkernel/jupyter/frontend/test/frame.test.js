import { expect, test, vi } from "vitest";
import { button, frameOf, said } from "./diff_fixture.js";
import { fakeModel } from "./model.js";

const AS_OF = "2026-11-30T09:21:05Z";
const alerts = (frame) => [...frame.root.querySelectorAll("[role=alert]")].map((line) => line.firstChild.textContent);

test("the host's shortcuts are off within it", () => {
  const { root } = frameOf(fakeModel());
  expect(root.dataset.lmSuppressShortcuts).toBe("true");
  expect(root.classList.contains("mk")).toBe(true);
});

test("traits are read, set and watched; messages of Python that are events are heard", () => {
  const model = fakeModel({ index: 1 });
  const saved = vi.spyOn(model, "save_changes");
  const frame = frameOf(model);
  const changed = vi.fn();
  const told = vi.fn();
  frame.on("index", changed);
  frame.onEvent(told);
  frame.set("index", frame.get("index") + 1);
  model.emit("msg:custom", { event: "stopped", run: "run_1" });
  model.emit("msg:custom", { id: 1, result: 2 });
  expect([model.get("index"), saved.mock.calls.length, changed.mock.calls.length]).toEqual([2, 1, 1]);
  expect(told.mock.calls).toEqual([[{ event: "stopped", run: "run_1" }]]);
});

test("a failed action is one line, however often it fails, and gone once it works", async () => {
  const frame = frameOf(fakeModel());
  const action = vi.fn();
  action.mockRejectedValueOnce(new Error("no")).mockRejectedValueOnce(new Error("not yet")).mockResolvedValue(7);
  expect(await frame.attempt("Restore", action)).toBeUndefined();
  await frame.attempt("Restore", action);
  expect(alerts(frame)).toEqual(["Restore: not yet "]);
  button(frame.root, "Retry").click();
  await vi.waitFor(() => expect(alerts(frame)).toEqual([]));
});

test("lines of several actions stand beside each other; one can be closed", async () => {
  const frame = frameOf(fakeModel());
  for (const what of ["Compare", "Copy patch"]) await frame.attempt(what, () => Promise.reject(new Error("no")));
  expect(alerts(frame)).toEqual(["Compare: no ", "Copy patch: no "]);
  button(frame.root, "Close this message").click();
  expect(alerts(frame)).toEqual(["Copy patch: no "]);
});

test("a refusal's hint follows its sentence, with one full stop between them", async () => {
  const model = fakeModel();
  const frame = frameOf(model);
  for (const message of ["The store is gone.", "The store is gone"]) {
    const failed = frame.attempt("Compare", () => frame.call("diff"));
    await model.refuse("diff", message, "See %memory stores.");
    await failed;
    expect(alerts(frame)).toEqual(["Compare: The store is gone. See %memory stores. "]);
  }
});

test("a kernel that is busy or gone is said with the time of what is shown", async () => {
  vi.useFakeTimers();
  const frame = frameOf(fakeModel({ as_of: AS_OF }));
  const failed = frame.attempt("Compare", () => frame.call("diff"));
  await vi.advanceTimersByTimeAsync(15_000);
  await failed;
  vi.useRealTimers();
  expect(alerts(frame)[0]).toBe(
    "Compare: the kernel is busy or gone; what is shown is as of 2026-11-30 09:21 UTC. ",
  );
});

test("a label in words is the button's name; a mere sign is named by its title", () => {
  const frame = frameOf(fakeModel());
  const words = frame.button("Restore…", "Write it again", () => undefined);
  const sign = frame.button("↑", "Previous change", () => undefined);
  expect([words.getAttribute("aria-label"), words.title]).toEqual([null, "Write it again"]);
  expect(sign.getAttribute("aria-label")).toBe("Previous change");
});

test("what is announced stands in a polite live region", () => {
  const frame = frameOf(fakeModel());
  frame.say("Change 3 of 26");
  expect(said(frame.root)).toBe("Change 3 of 26");
  expect(frame.root.querySelector("[role=status]").getAttribute("aria-live")).toBe("polite");
});

test("closing ends everything that it began", () => {
  const model = fakeModel();
  const frame = frameOf(model);
  const closed = vi.fn();
  const forgotten = vi.fn();
  frame.on("index", () => undefined);
  frame.onEvent(() => undefined);
  frame.onClose(closed);
  frame.onClose(forgotten)();
  frame.close();
  expect(closed).toHaveBeenCalledTimes(1);
  expect(forgotten).not.toHaveBeenCalled();
  expect(model.listening()).toBe(0);
  expect(frame.root.isConnected).toBe(false);
});
