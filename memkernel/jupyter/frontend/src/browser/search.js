import { h, plain, replace, text } from "../dom.js";
import { counted } from "../format.js";
import { rawPath } from "./paths.js";

/**
 * What a search through the contents found, best first, with the lines where the words stand.
 *
 * @returns {{element: HTMLElement, run: (words: string) => Promise<void>, close: () => void}}
 */
export function searchPane(desk, onClose) {
  const element = h("div", { class: "mk-hits", role: "region", "aria-label": "What was found", hidden: true });
  let turns = 0;

  async function run(words) {
    const turn = (turns += 1);
    const found = await desk.frame.attempt("Search", () => desk.frame.call("search", { text: words }));
    if (!found || turn !== turns) return;
    element.hidden = false;
    replace(element, head(words, found), h("ol", {}, ...found.hits.map((hit) => h("li", {}, drawn(hit, desk)))));
    desk.frame.say(`${counted(found.total, "memory", "memories")} found`);
    element.querySelector(".mk-hit")?.focus();
  }

  function head(words, { hits, total }) {
    const shown = hits.length < total ? `, the first ${hits.length} shown` : "";
    return h(
      "div",
      { class: "mk-hits-head" },
      h("span", {}, `“${words}” in ${counted(total, "memory", "memories")}${shown}`),
      desk.frame.button("×", "Close the search (Esc)", close, { class: "mk-button mk-quiet" }),
    );
  }

  function close() {
    if (element.hidden) return;
    turns += 1;
    element.hidden = true;
    onClose();
  }

  element.addEventListener("keydown", (event) => {
    const hits = [...element.querySelectorAll(".mk-hit")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key !== "Escape" && !step) return;
    event.preventDefault();
    event.stopPropagation();
    if (step) hits[Math.max(0, Math.min(hits.length - 1, hits.indexOf(element.getRootNode().activeElement) + step))]?.focus();
    else close();
  });
  return { element, run, close };
}

function drawn([path, , count, snippets], desk) {
  const key = rawPath(path);
  const line = snippets.find(([number]) => number > 0)?.[0] ?? 0;
  return h(
    "button",
    { type: "button", class: "mk-hit", title: `Open ${plain(path)}`, onclick: () => desk.open(key, "click", { line }) },
    h("span", { class: "mk-hit-path" }, ...text(path)),
    h("span", { class: "mk-hit-count" }, counted(count, "place")),
    ...snippets.filter(([number]) => number > 0).map(snippet),
  );
}

function snippet([number, spans]) {
  const words = spans.flatMap(([hit, part]) => (hit ? [h("mark", {}, ...text(part))] : text(part)));
  return h("span", { class: "mk-hit-line" }, h("span", { class: "mk-hit-number" }, String(number)), ...words);
}
