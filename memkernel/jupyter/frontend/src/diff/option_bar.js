import { h } from "../dom.js";

const LAYOUTS = [
  ["auto", "Auto", "Side by side where there is room"],
  ["split", "Split", "Side by side (u)"],
  ["unified", "Unified", "One below the other (u)"],
];
const SWITCHES = [
  ["word_level", "Words", "w", "Mark the words that differ"],
  ["fold", "Fold", "f", "Fold lines that do not differ"],
  ["ignore_ws", "Ignore white space", "i", "Lines that differ in white space alone are the same"],
  ["wrap", "Wrap", "l", "Wrap long lines"],
];

/**
 * The row above a diff: how much differs, the way from change to change, how it is shown, and its keys.
 *
 * @param {{layout: () => string, stats: HTMLElement, walk: object, copy: () => void, close?: () => void}} parts
 */
export function optionBar(frame, options, { layout, stats, walk, copy, close }) {
  const flip = (name) => options.set(name, !options.get(name));
  const turn = () => options.set("mode", layout() === "split" ? "unified" : "split");
  const layouts = LAYOUTS.map(([mode, label, title]) => frame.button(label, title, () => options.set("mode", mode)));
  const switches = SWITCHES.map(([name, label, key, title]) =>
    frame.button(label, `${title} (${key})`, () => flip(name)),
  );
  const element = h(
    "div",
    { class: "mk-bar mk-diff-bar", role: "group", "aria-label": "How the differences are shown" },
    stats,
    h(
      "span",
      { class: "mk-joined" },
      frame.button("↑", "Previous change (p, Shift+F7)", () => walk.go(-1)),
      frame.button("↓", "Next change (n, F7)", () => walk.go(1)),
    ),
    h("span", { class: "mk-gap" }),
    h("span", { class: "mk-joined", role: "group", "aria-label": "Layout" }, layouts),
    switches,
    frame.button("Copy patch", "Copy the unified diff (c)", copy),
    close ? frame.button("×", "Close the diff", close, { class: "mk-button mk-quiet" }) : null,
  );
  return {
    element,
    keys: {
      n: ["Next change", () => walk.go(1)],
      p: ["Previous change", () => walk.go(-1)],
      F7: ["Next change", () => walk.go(1)],
      "Shift+F7": ["Previous change", () => walk.go(-1)],
      u: ["Side by side, or one below the other", turn],
      ...Object.fromEntries(SWITCHES.map(([name, , key, title]) => [key, [title, () => flip(name)]])),
      c: ["Copy the patch", copy],
    },
    update() {
      LAYOUTS.forEach(([mode], index) => press(layouts[index], options.get("mode") === mode));
      SWITCHES.forEach(([name], index) => press(switches[index], options.get(name)));
    },
  };
}

function press(button, pressed) {
  button.setAttribute("aria-pressed", String(Boolean(pressed)));
}
