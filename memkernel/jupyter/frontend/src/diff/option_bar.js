import { aria, h } from "../dom.js";

const LAYOUTS = { auto: "Auto", split: "Split", unified: "Unified" };
const SWITCHES = [
  ["word_level", "Words", "w"],
  ["fold", "Fold", "f"],
  ["ignore_ws", "Ignore white space", "i"],
  ["wrap", "Wrap", "l"],
];

/**
 * The row above a diff: how much differs, the way from change to change, how it is shown, and its keys.
 *
 * @param {{layout: () => string, stats: HTMLElement, walk: object, copy: () => void, close?: () => void}} parts
 */
export function optionBar(frame, options, { layout, stats, walk, copy, close }) {
  const shown = [];
  const press = (name, value, label, title, action) => {
    const button = frame.button(label, title, action);
    shown.push(() => aria(button, "pressed", options.get(name) === value));
    return button;
  };
  const next = ["Next change", () => walk.go(1)];
  const previous = ["Previous change", () => walk.go(-1)];
  const keys = {
    n: next,
    F7: next,
    p: previous,
    "Shift+F7": previous,
    u: ["Split or unified", () => options.set("mode", layout() === "split" ? "unified" : "split")],
    c: ["Copy the patch", copy],
  };
  const layouts = Object.entries(LAYOUTS).map(([mode, label]) =>
    press("mode", mode, label, "Split or unified (u)", () => options.set("mode", mode)),
  );
  const switches = SWITCHES.map(([name, label, key]) => {
    const flip = () => options.set(name, !options.get(name));
    keys[key] = [label, flip];
    return press(name, true, label, `${label} (${key})`, flip);
  });
  const element = h(
    "div.mk-bar",
    stats,
    h(
      "span.mk-joined",
      frame.button("↑", "Previous change (p, Shift+F7)", previous[1]),
      frame.button("↓", "Next change (n, F7)", next[1]),
    ),
    h("span.mk-gap"),
    h("span.mk-joined", { role: "group", "aria-label": "Layout" }, layouts),
    switches,
    frame.button("Copy patch", "Copy the patch (c)", copy),
    close ? frame.button("×", "Close the diff", close) : null,
  );
  return { element, keys, update: () => shown.forEach((show) => show()) };
}
