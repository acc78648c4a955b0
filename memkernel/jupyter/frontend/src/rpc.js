/** How long an answer may take before the page says that the kernel is busy or gone. */
export const PATIENCE_MS = 15_000;

/** What the kernel refused: one sentence, and perhaps what to do. */
export class RequestError extends Error {
  constructor({ message, hint = "" }) {
    super(message);
    this.hint = hint;
  }
}

/** No answer in time. */
export class BusyError extends Error {}

/**
 * Requests over custom messages: `{id, method, params}` there, `{id, result}` or `{id, error}` back. Unlike traits
 * nothing of it is saved in the notebook.
 *
 * @returns {{call: (method: string, params?: object) => Promise<*>, dispose: () => void}}
 */
export function requests(model, patienceMs = PATIENCE_MS) {
  const waiting = new Map();
  let last = 0;

  function onMessage(message) {
    const entry = waiting.get(message?.id);
    if (!entry) return;
    settle(message.id);
    if (message.error) entry.reject(new RequestError(message.error));
    else entry.resolve(message.result);
  }

  function settle(id) {
    clearTimeout(waiting.get(id).timer);
    waiting.delete(id);
  }

  function call(method, params = {}) {
    return new Promise((resolve, reject) => {
      const id = ++last;
      const giveUp = () => {
        settle(id);
        reject(new BusyError(method));
      };
      waiting.set(id, { resolve, reject, timer: setTimeout(giveUp, patienceMs) });
      try {
        model.send({ id, method, params });
      } catch {
        giveUp(); // the host refuses to send: the kernel is gone
      }
    });
  }

  model.on("msg:custom", onMessage);
  return {
    call,
    dispose() {
      model.off("msg:custom", onMessage);
      for (const id of [...waiting.keys()]) settle(id);
    },
  };
}
