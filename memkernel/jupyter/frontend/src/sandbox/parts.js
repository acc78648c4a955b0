import { h, text } from "../dom.js";

/** The parts of the panel that stay; what changes is drawn into them. */
export function makeParts(frame) {
  const state = h("span", { class: "mk-tag mk-badge" });
  const sentence = h("span", { class: "mk-sentence" });
  const buttons = h("span", { class: "mk-buttons" });
  const title = h("span", { class: "mk-title" }, "sandbox ", frame.get("name"));
  return {
    state,
    sentence,
    buttons,
    bar: h("div", { class: "mk-bar" }, title, state, sentence, h("span", { class: "mk-gap" }), buttons),
    said: h("p", { class: "mk-said", hidden: true }),
    limits: limitsLine(frame),
    held: h("div", {}),
    mounts: region("mk-part mk-mounts-frame", "Mounted stores"),
    ...asideParts(),
    ...logParts(),
  };
}

function asideParts() {
  const asideTitle = h("h4", {});
  const asideList = h("ul", { class: "mk-conflicts" });
  const asideMore = h("p", { class: "mk-faint" });
  return { asideTitle, asideList, asideMore, aside: part("mk-aside", asideTitle, asideList, asideMore) };
}

function logParts() {
  const heading = h("h4", {}, "Cells, newest first ", h("span", { class: "mk-faint mk-utc" }, "(times are UTC)"));
  const entries = h("ul", { class: "mk-entries" });
  const none = h("p", { class: "mk-faint" }, "No cell has run yet.");
  const more = h("p", { class: "mk-faint" });
  return { entries, none, more, log: part("", heading, none, region("mk-log", "Cells, newest first", entries), more) };
}

function limitsLine(frame) {
  const limits = frame.get("limits").map(([name, value]) => h("span", {}, `${name} `, h("b", {}, ...text(value))));
  const isolation = h("div", { class: "mk-faint" }, frame.get("isolation"));
  return part("mk-limits", h("div", { class: "mk-limits-line" }, limits), isolation);
}

function part(kind, ...children) {
  return h("div", { class: `mk-part ${kind}` }, children);
}

/** What scrolls can be reached by key. */
function region(kind, label, ...children) {
  return h("div", { class: kind, role: "region", "aria-label": label, tabindex: "0" }, children);
}
