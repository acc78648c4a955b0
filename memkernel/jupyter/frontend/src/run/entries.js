import { aria, h, hasFocus, plain, replace, text } from "../dom.js";
import { diffPanel } from "../diff/panel.js";

const WHY = "Why not (the model is told)";

const SHAPES = {
  thinking: ({ words }) => h("details", h("summary", "Thinking"), words),
  tool: ({ words, state, parts, asking, made }) => [
    h("details", h("summary", words, " ", state), parts),
    asking,
    made,
  ],
};

/**
 * The view of an entry (widgets/run_log.py): what somebody said, or a tool's call.
 *
 * @returns {{n: number, element: HTMLElement, update: (entry: object) => void, add: (change: object) => void,
 *   spoken: () => string}} `n` is the number of the last change that it shows
 */
export function entryView(frame, first) {
  const words = h("span.mk-run-words");
  const state = h("span.mk-faint");
  const parts = h("div.mk-run-parts");
  const asking = h("div.mk-row.mk-run-parts", { role: "group", hidden: true });
  const made = h("div.mk-run-made");
  const shape = SHAPES[first.kind];
  const shown = shape ? shape({ words, state, parts, asking, made }) : [words, parts];
  const element = h(`div.mk-run-entry.mk-run-${first.kind}`, { "data-call": first.call }, shown);
  const view = {
    element,
    update(entry) {
      view.n = entry.n;
      replace(words, text(entry.text));
      state.textContent = entry.state ?? "";
      element.classList.toggle("mk-run-failed", Boolean(entry.error));
      ask(entry);
      replace(parts, (entry.parts ?? []).flatMap(part), rest(entry));
      if (!made.firstChild) showMade(frame, made, entry.made ?? []);
    },
    /** Words that stream in stay one text node. */
    add({ n, add }) {
      view.n = n;
      for (const piece of text(add)) {
        if (typeof piece === "string" && words.lastChild instanceof Text) words.lastChild.appendData(piece);
        else words.append(piece);
      }
    },
    spoken: () => (first.kind === "thinking" ? "" : `${words.textContent} ${state.textContent}`.trim()),
  };

  /** What waits for a person is open, is said, and gives the focus back. */
  function ask({ k, text: call, asks = [] }) {
    const waits = asks.length > 0;
    if (waits !== asking.hidden) return;
    const had = hasFocus(asking);
    state.className = waits ? "mk-tag" : "mk-faint";
    element.firstChild.open = waits;
    asking.hidden = !waits;
    if (!waits) return void (had && element.querySelector("summary").focus());
    const why = h("input.mk-input.mk-wide", { "aria-label": WHY, placeholder: WHY, onkeydown });
    replace(asking, asks.map((row) => answer(k, row, why)), why);
    aria(asking, "label", plain(call));
    frame.say(view.spoken());
    frame.call("here").catch(() => {}); // so that Python knows whether answers from here reach it
  }

  /** Enter after a reason is the last answer, which is the one that takes it. */
  function onkeydown({ key, target }) {
    if (key === "Enter") target.previousSibling.click();
  }

  function answer(k, [method, params, label, title], why) {
    let sent = false;
    const send = async () => {
      if (sent) return;
      sent = true;
      const reason = "reason" in params && { reason: why.value };
      const go = async () => (await frame.call(method, { entry: k, ...params, ...reason }), true);
      sent = await frame.attempt(label, go);
    };
    return frame.button(label, title, send);
  }

  function rest({ k, more }) {
    const ask = async () => {
      const whole = await frame.attempt(more, () => frame.call("whole", { entry: k }));
      if (whole) view.update(whole);
    };
    return more ? frame.button(more, "Show all of it", ask) : null;
  }

  view.update(first);
  return view;
}

function part([title, content]) {
  return [
    h("div.mk-faint", title),
    h("div.mk-run-part", { role: "region", tabindex: "0", "aria-label": title }, text(content)),
  ];
}

/** The versions that a call made, each a button that opens what it changed. */
function showMade(frame, place, versions) {
  let close = () => {};

  function open(button, id, path) {
    const panel = diffPanel(frame, { old: "prev", new: id, title: path, onClose: () => (close(), button.focus()) });
    aria(button, "expanded", "true");
    place.append(panel.element);
    close = () => {
      panel.dispose();
      aria(button, "expanded", "false");
      close = () => {};
    };
  }

  for (const [id, line, path] of versions) {
    const toggle = ({ currentTarget: button }) => {
      const isOpen = button.getAttribute("aria-expanded") === "true";
      close();
      if (!isOpen) open(button, id, path);
    };
    const title = "Show what this version changed";
    const button = frame.button("", title, toggle, { "aria-expanded": "false", "aria-label": null });
    place.append(id ? replace(button, text(line)) : h("span", text(line)));
  }
}
