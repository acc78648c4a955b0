import { h, replace, text } from "../dom.js";
import { counted } from "../format.js";

/**
 * What a search through the contents found, best first, with the lines where the words stand, in place of the tree.
 *
 * @returns {{element: HTMLElement, run: (words: string) => Promise<void>, hide: () => void}}
 */
export function searchPane(desk, tree) {
  const element = h("div.mk-window", { role: "region", "aria-label": "Found", hidden: true });
  let asked = 0;

  async function run(words) {
    const mine = ++asked;
    const found = await desk.frame.attempt("Search", () => desk.frame.call("search", { text: words }));
    if (!found || mine !== asked) return;
    show(true);
    const { hits, total } = found;
    const all = `${counted(total, "memory", "memories")} found`;
    const sentence = hits.length < total ? `${all}, the first ${hits.length} shown` : all;
    replace(element, h("div.mk-bar.mk-faint", { role: "status" }, sentence), hits.map(drawn));
    element.querySelector("button")?.focus();
  }

  function show(on) {
    element.hidden = !on;
    tree.hidden = on;
  }

  /** An answer that is still to come is not wanted any more. */
  function hide() {
    asked += 1;
    show(false);
  }

  function drawn([path, , count, snippets, key = path]) {
    const lines = snippets.filter(([number]) => number > 0);
    return h(
      "button.mk-hit",
      { onclick: () => desk.open(key, "click") },
      h("b.mk-name", ...text(path)),
      h("span.mk-end", counted(count, "place")),
      lines.map(([number, spans]) => h("span.mk-snippet", `${number}  `, ...spans.flatMap(span))),
    );
  }

  return { element, run, hide };
}

function span([hit, part]) {
  return hit ? [h("mark", ...text(part))] : text(part);
}
