import { aria, h } from "../dom.js";
import { diffPanel } from "../diff/panel.js";

/**
 * Differences that open and close under their own line. What is open stays so when the line is drawn anew.
 *
 * @returns {{part: (pair: object, label: *, title: string) => Node[], again: (pair: object) => void,
 *   keep: (keys: string[]) => void}} `part`: a button and the place below; an open one is known by its new text
 */
export function comparisons(frame) {
  const open = new Map();

  function part(pair, label, title) {
    const key = pair.new;
    const place = h("div.mk-under");
    const button = frame.button(label, title, toggle);
    show();

    function show() {
      const panel = open.get(key);
      place.replaceChildren(...(panel ? [panel.element] : []));
      aria(button, "expanded", Boolean(panel));
    }

    function toggle() {
      if (open.has(key)) drop(key);
      else open.set(key, diffPanel(frame, { ...pair, onClose: toggle }));
      show();
      button.focus();
    }

    return [button, place];
  }

  function drop(key) {
    open.get(key).dispose();
    open.delete(key);
  }

  return {
    part,
    /** The store may have moved on: compare with what it holds now. */
    again(pair) {
      const panel = open.get(pair.new);
      panel?.clear();
      panel?.show(pair);
    },
    /** Close those that are gone. */
    keep(keys) {
      for (const key of [...open.keys()]) if (!keys.includes(key)) drop(key);
    },
  };
}
