/** anywidget's model, as far as the frame uses it; `sent` are the requests, `answer` settles the last one of a method. */
export function fakeModel(state = {}) {
  const listeners = {};
  const emit = (event, ...facts) => (listeners[event] ?? []).slice().forEach((fn) => fn(...facts));
  return {
    sent: [],
    get: (name) => state[name],
    set: (name, value) => ((state[name] = value), emit(`change:${name}`)),
    save_changes() {},
    on: (event, fn) => (listeners[event] ??= []).push(fn),
    off: (event, fn) => (listeners[event] = (listeners[event] ?? []).filter((each) => each !== fn)),
    send(message) {
      this.sent.push(message);
    },
    emit,
    listening: () => Object.values(listeners).flat().length,
    asked(method) {
      return this.sent.filter((message) => message.method === method);
    },
    answer(method, result) {
      emit("msg:custom", { id: this.asked(method).at(-1).id, result });
      return new Promise((resolve) => setTimeout(resolve));
    },
    refuse(method, message, hint = "") {
      emit("msg:custom", { id: this.asked(method).at(-1).id, error: { message, hint } });
      return new Promise((resolve) => setTimeout(resolve));
    },
  };
}
