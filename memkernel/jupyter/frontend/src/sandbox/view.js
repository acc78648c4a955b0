import { question } from "../diff/dialogs.js";
import { aria, h, plain, replace, text } from "../dom.js";
import { comparisons } from "./comparing.js";
import { keyed } from "./keyed.js";

/**
 * A sandbox: how it stands, its stores, what was put aside, and its cells with what became of their files. Its words
 * come from Python (widgets/sandbox_rows.py).
 */
export function sandboxPanel(frame) {
  const compare = comparisons(frame);
  const [sentence, said] = [h("span"), h("p.mk-part.mk-dialog", { hidden: true })];
  const [buttons, asking, held] = [h("span.mk-row"), h("div"), h("div")];
  const [mounts, conflicts, cells] = [h("ul.mk-list"), h("ul.mk-list"), h("ul.mk-list")];
  const [asideTitle, cellsTitle] = [h("b"), h("b")];
  const aside = h("div.mk-part.mk-aside", asideTitle, conflicts);
  const limits = frame.get("limits").map(([name, value]) => h("span", `${name} `, h("b", value)));

  aria(frame.root, "label", `Sandbox ${frame.get("name")}`);
  frame.body.append(
    h("div.mk-bar", h("span.mk-title", `sandbox ${frame.get("name")}`), sentence, h("span.mk-gap"), buttons),
    asking,
    said,
    h("div.mk-part", h("div.mk-row", limits), h("div.mk-faint", frame.get("isolation"))),
    held,
    h("div.mk-part", { role: "group", "aria-label": "Stores" }, mounts),
    aside,
    h("div.mk-part", cellsTitle, scrolled(cells)),
  );

  /** A button by its row: the request, its label and title, and the question that comes first. */
  function action([method, label, title, asks], params = {}, name = null) {
    const go = () =>
      frame.attempt(label, async () => {
        try {
          tell((await frame.call(method, params)).said);
        } catch (error) {
          compare.again(pairOf(params.id));
          throw error;
        }
      });
    return frame.button(label, title, asks ? () => ask(label, asks, go) : go, name && { "aria-label": name });
  }

  function ask(label, sentences, go) {
    const asked = question(frame, asking, { label });
    asked.fill(h("span", sentences), frame.button(label, "Go on", () => (asked.close(), go())));
  }

  function tell(words = "") {
    said.hidden = !words;
    said.textContent = words;
    frame.say(words);
  }

  function mount([slug, folder, state, store, reset]) {
    const button = reset && action(reset, { store }, `Reset ${slug}`);
    return h("li.mk-row", h("b", slug), h("code", folder), h("span", state), h("span.mk-gap"), button);
  }

  function heldBack([words, ...button]) {
    return h("p.mk-part.mk-dialog", words, button.length ? action(button) : null);
  }

  function conflict([id, path, facts, reason, hows]) {
    const choices = frame.get("choices");
    const pair = { ...pairOf(id), title: plain(path) };
    const [button, place] = compare.part(pair, "Show the difference", "With what the store holds now");
    const settle = (how) => action(choices[how], { id, how }, `${choices[how][1]}: ${plain(path)}`);
    const head = h("div.mk-row", h("code", text(path)), h("span", facts));
    return h("li", head, h("div.mk-words", reason), h("div.mk-row", button, hows.map(settle)), place);
  }

  function cell([, title, facts, kind, code, time, notes, files]) {
    const head = [h("b", title), h(`span.${kind}`, facts), h("code.mk-gap.mk-faint", code), h("time.mk-faint", time)];
    return h(
      "li",
      h("div.mk-row", head),
      notes.map((note) => h("div.mk-words", note)),
      h("ul.mk-list.mk-files", files.map(file)),
    );
  }

  function file([, kind, outcome, path, version, facts]) {
    const named = h("code", text(path));
    const pair = { old: "prev", new: version, title: plain(path) };
    const [shown, place] = version ? compare.part(pair, named, "Show what it changed") : [named];
    return h("li.mk-row", h(`span.mk-outcome.${kind}`, outcome), shown, h("span.mk-words", facts), place);
  }

  function paint() {
    const [rejected, changes] = [frame.get("conflicts"), frame.get("changes")];
    compare.keep([...rejected.map(([id]) => `rejected:${id}`), ...changes.map((change) => change[4])]);
    sentence.textContent = frame.get("sentence");
    replace(buttons, frame.get("buttons").map((row) => action(row)));
    replace(held, frame.get("held").map(heldBack));
    keyed(mounts, frame.get("mounts"), mount);
    [asideTitle.textContent, cellsTitle.textContent] = frame.get("titles");
    aside.hidden = !rejected.length;
    keyed(conflicts, rejected, conflict);
    const filesOf = (row) => changes.filter(([key]) => key === row[0]);
    keyed(cells, frame.get("cells").map((row) => [...row, filesOf(row)]), cell);
    frame.ready(`${frame.get("status")}:${frame.get("cells").length}:${rejected.length}`);
  }

  let waiting = 0;
  const paintSoon = () => (waiting ||= requestAnimationFrame(() => ((waiting = 0), paint())));
  for (const name of ["sentence", "buttons", "held", "mounts", "titles", "conflicts", "changes", "cells"]) {
    frame.on(name, paintSoon);
  }
  frame.on("sentence", () => frame.say(frame.get("sentence")));
  paint();
}

/** What was put aside beside what the store holds there now: texts that Python knows by these names. */
function pairOf(id) {
  return { old: `head:${id}`, new: `rejected:${id}` };
}

/** What scrolls can be reached by key. */
function scrolled(list) {
  return h("div.mk-scroll", { role: "region", "aria-label": "Cells, newest first", tabindex: "0" }, list);
}
