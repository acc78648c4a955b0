import { expect, test, vi } from "vitest";
import { BusyError, RequestError, requests } from "../src/rpc.js";
import { fakeModel } from "./model.js";

test("answers find their questions, in whatever order they come", async () => {
  const model = fakeModel();
  const { call } = requests(model);
  const answers = [call("lines", { start: 1 }), call("diff"), call("lines", { start: 9 })];
  const ids = model.sent.map((message) => message.id);
  for (const index of [2, 0, 1]) model.emit("msg:custom", { id: ids[index], result: index });
  expect(await Promise.all(answers)).toEqual([0, 1, 2]);
  expect(model.sent[0]).toEqual({ id: ids[0], method: "lines", params: { start: 1 } });
});

test("a refusal has its sentence and its hint", async () => {
  const model = fakeModel();
  const answer = requests(model).call("diff");
  const error = { message: "The store is gone.", hint: "See %memory stores." };
  model.emit("msg:custom", { id: model.sent[0].id, error });
  await expect(answer).rejects.toThrow("The store is gone.");
  await answer.catch((raised) => expect([raised.constructor, raised.hint]).toEqual([RequestError, "See %memory stores."]));
});

test("what is no answer of ours is let pass", async () => {
  const model = fakeModel();
  const { call } = requests(model);
  const answer = call("diff");
  const others = [undefined, null, {}, { id: 77, result: 1 }, { event: "told" }];
  for (const message of others) model.emit("msg:custom", message);
  model.emit("msg:custom", { id: model.sent[0].id, result: "mine" });
  expect(await answer).toBe("mine");
});

test("a kernel that does not answer in time is busy or gone; what comes later is let pass", async () => {
  vi.useFakeTimers();
  const model = fakeModel();
  const answer = requests(model, 15_000).call("diff");
  const failed = expect(answer).rejects.toBeInstanceOf(BusyError);
  await vi.advanceTimersByTimeAsync(15_000);
  await failed;
  model.emit("msg:custom", { id: model.sent[0].id, result: "late" });
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

test("a closed channel waits for nothing and listens to nothing", () => {
  vi.useFakeTimers();
  const model = fakeModel();
  const { call, dispose } = requests(model);
  call("diff");
  dispose();
  expect([vi.getTimerCount(), model.listening()]).toEqual([0, 0]);
  vi.useRealTimers();
});

test("a host that cannot send says that the kernel is gone, at once", async () => {
  vi.useFakeTimers();
  const model = fakeModel();
  model.send = () => {
    throw new Error("Cannot send");
  };
  await expect(requests(model).call("diff")).rejects.toBeInstanceOf(BusyError);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});
