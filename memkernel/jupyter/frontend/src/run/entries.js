import { aria, h, replace, text } from "../dom.js";
import { diffPanel } from "../diff/panel.js";

const SHAPES = {
  thinking: ({ words }) => h("details", h("summary", "Thinking"), words),
  tool: ({ words, state, parts, made }) => [h("details", h("summary", words, " ", state), parts), made],
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
  const made = h("div.mk-run-made");
  const shape = SHAPES[first.kind];
  const shown = shape ? shape({ words, state, parts, made }) : [words, parts];
  const element = h(`div.mk-run-entry.mk-run-${first.kind}`, shown);
  const view = {
    element,
    update(entry) {
      view.n = entry.n;
      replace(words, text(entry.text));
      state.textContent = entry.state ?? "";
      element.classList.toggle("mk-run-failed", Boolean(entry.error));
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
