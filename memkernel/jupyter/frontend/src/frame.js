import { h } from "./dom.js";
import { moment } from "./format.js";
import { keyboard } from "./keys.js";
import { BusyError, requests } from "./rpc.js";
import { watchTheme } from "./theme.js";

/**
 * What every view stands in: its root element, its traits, its requests, and one place for failures, announcements,
 * keys and the end.
 *
 * @param {{model: object, el: HTMLElement}} context anywidget's
 * @returns {object} the frame, as the functions below are named
 */
export function openFrame({ model, el }) {
  const closing = [];
  const live = h("div.mk-sr", { role: "status", "aria-live": "polite" });
  const failures = h("div.mk-failures");
  const body = h("div.mk-view");
  const props = { role: "region", tabindex: "-1", "data-lm-suppress-shortcuts": "true" };
  const root = h("section.mk", props, failures, body, live);
  el.append(root);
  const channel = requests(model);
  closing.push(channel.dispose, watchTheme(el, (dark) => root.classList.toggle("mk-dark", dark)));

  function listen(event, fn) {
    model.on(event, fn);
    const stop = () => model.off(event, fn);
    closing.push(stop);
    return stop;
  }

  const frame = {
    model,
    root,
    body,
    call: channel.call,
    get: (name) => model.get(name),
    set(name, value) {
      model.set(name, value);
      model.save_changes();
    },
    /** Be told when a trait changes, from here or from Python. */
    on: (name, fn) => listen(`change:${name}`, fn),
    /** Be told what Python says: `{event, …}`. */
    onEvent: (fn) => listen("msg:custom", (message) => message?.event && fn(message)),
    /** Be told at the end; gives the way not to be. */
    onClose(fn) {
      closing.push(fn);
      return () => closing.splice(0, Infinity, ...closing.filter((each) => each !== fn));
    },
    say(words) {
      live.textContent = words;
    },
    ready(token) {
      requestAnimationFrame(() => requestAnimationFrame(() => (root.dataset.ready = token)));
    },
    attempt: (what, action) => attempt(frame, failures, what, action),
    keys: keyboard(root),
    /** A label in words is the button's name, and the title says more; a mere sign is named by its title. */
    button(label, title, action, props = {}) {
      const name = /\p{L}{2}/u.test(label) ? null : title;
      const all = { type: "button", class: "mk-button", title, "aria-label": name, onclick: action, ...props };
      return h("button", all, label);
    },
    close() {
      for (const fn of closing.splice(0)) fn();
      root.remove();
    },
  };
  return frame;
}

/**
 * Do something that can fail. A failure is one visible line that says what, why and what to do, with Retry; the next
 * attempt at the same thing takes it away.
 *
 * @param {string} what for the line: `Restore`
 * @returns {Promise<*>} what the action gave; undefined where it failed
 */
async function attempt(frame, failures, what, action) {
  clear(failures, what);
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const line = h("p.mk-failure", { role: "alert", "data-what": what }, sentence(frame, what, error));
    const again = () => attempt(frame, failures, what, action);
    line.append(
      frame.button("Retry", `Retry: ${what}`, again),
      frame.button("×", "Close this message", () => line.remove()),
    );
    failures.append(line);
    return undefined;
  }
}

function clear(failures, what) {
  for (const line of [...failures.children]) if (line.dataset.what === what) line.remove();
}

function sentence(frame, what, error) {
  if (error instanceof BusyError) {
    return `${what}: the kernel is busy or gone; what is shown is as of ${moment(frame.get("as_of"))} UTC. `;
  }
  return `${what}: ${[error.message, error.hint].filter(Boolean).join(". ").replace(/([.!?])\. /g, "$1 ")} `;
}
