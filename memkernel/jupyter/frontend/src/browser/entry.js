import { h } from "../dom.js";

/**
 * A row of a list of versions, or of what differs: a sign, a name, what stands at the end, and below it the facts.
 *
 * @param {[number, number]} place which row of how many
 * @param {{id: string, selected: string, title: string, did: string, sign: string, name: *, end: *, facts: string}} row
 */
export function historyEntry([number, total], { id, selected, title, did, sign, name, end, facts }) {
  const props = { role: "option", title, "aria-setsize": total, "aria-posinset": number };
  return h(
    "div.mk-entry.mk-version",
    { ...props, "aria-selected": String(id === selected) },
    h(`span.mk-glyph.mk-${did}`, { role: "img", "aria-label": did }, sign),
    h("span.mk-name", name),
    h("span.mk-end", end),
    h("span.mk-end.mk-name", facts),
  );
}
