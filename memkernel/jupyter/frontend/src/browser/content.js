import { h, plain, replace, text } from "../dom.js";
import { actor, ago, moment, size } from "../format.js";
import * as records from "../records.js";
import { markdown } from "./markdown.js";

const VIEWS = [
  ["preview", "Preview", "Show it as Markdown, rendered"],
  ["source", "Source", "Show the text as it is"],
];

/**
 * One memory, or one version of it: who wrote it, and its text, rendered or as it is.
 *
 * @param {object} desk
 * @param {{questions: object, editor: object, actions: HTMLElement}} parts what else stands in the pane
 */
export function contentPane(desk, { questions, editor, actions }) {
  const { frame } = desk;
  const path = h("span", { class: "mk-path" });
  const facts = h("div", { class: "mk-facts" });
  const body = h("div", { class: "mk-text", tabindex: "0", role: "region", "aria-label": "Content" });
  const views = VIEWS.map(([name, label, title]) => {
    return frame.button(label, title, () => setView(name), { "data-view": name });
  });
  const edit = frame.button("Edit", "Edit (e)", () => desk.edit(), { "data-changes": true });
  const switches = h("span", { class: "mk-switches", role: "group", "aria-label": "How it is shown" }, ...views, edit);
  const head = h("div", { class: "mk-pane-head" }, path, h("span", { class: "mk-gap" }), switches, actions);
  const element = h(
    "div",
    { class: "mk-pane mk-content", role: "region", "aria-label": "Memory" },
    head,
    questions.element,
    facts,
    body,
    editor.element,
  );
  let shown = null;

  function setView(name) {
    frame.set("view", name);
    if (editor.isOpen()) editor.suspend();
    paint();
  }

  /** @param {object|null} content an answer of `read`, or nothing */
  function put(content, { line = 0 } = {}) {
    shown = content && { ...content, version: records.version(content.version) };
    if (line && frame.get("view") !== "source") frame.set("view", "source");
    paint();
    body.scrollTop = 0;
    if (line) scrollToLine(body, line);
  }

  function paint() {
    const editing = editor.isOpen();
    head.hidden = shown === null && !editing;
    body.hidden = editing;
    facts.hidden = editing || shown === null;
    for (const each of views) each.setAttribute("aria-pressed", String(!editing && each.dataset.view === frame.get("view")));
    edit.setAttribute("aria-pressed", String(editing));
    if (shown === null) return replace(body, nothing(desk));
    switches.hidden = shown.text === null;
    edit.hidden = desk.readonly() || !(shown.live && shown.head);
    actions.hidden = desk.readonly() || !(shown.live && shown.head);
    replace(path, ...(shown.version.path === null ? ["(redacted)"] : text(shown.version.path)));
    replace(facts, ...factsOf(shown, desk));
    return paintText();
  }

  function paintText() {
    const rendered = frame.get("view") === "preview" && shown.text !== null;
    body.className = `mk-text ${rendered ? "mk-preview" : "mk-source"}`;
    if (shown.text === null) return replace(body, h("p", { class: "mk-gone" }, shown.note));
    if (shown.text.length === 0) return replace(body, h("p", { class: "mk-faint" }, "(empty)"));
    if (!rendered) return replace(body, ...text(shown.text));
    const { nodes, whole } = markdown(shown.text);
    return replace(body, ...nodes, whole ? null : cutShort(frame, setView));
  }

  return {
    element,
    body,
    put,
    paint,
    shown: () => shown,
    focus: () => body.focus(),
  };
}

function cutShort(frame, setView) {
  const source = frame.button("Source", "Show the whole text as it is", () => setView("source"));
  return h("p", { class: "mk-faint" }, "The rest is not rendered: the text is very long. The whole of it is in ", source);
}

function nothing(desk) {
  const words = desk.memories.total()
    ? "Choose a memory, or a version in the history."
    : desk.readonly()
      ? "This store holds no memory."
      : "This store holds no memory yet. New writes the first one.";
  return h("p", { class: "mk-nothing" }, words);
}

function factsOf(shown, desk) {
  const { version, live, head } = shown;
  const bytes = version.size === null ? null : size(version.size);
  const written = h("span", { title: ago(version.at) }, `${version.operation} ${moment(version.at)} UTC`);
  const words = [`@${version.ordinal}`, written, actor(version) || null, bytes].filter(Boolean);
  const line = words.flatMap((each, index) => (index ? [" · ", each] : [each]));
  return [
    h("span", { class: "mk-faint mk-written" }, ...line),
    head && live ? null : h("span", { class: "mk-tag" }, live ? "not the head" : "deleted"),
    ...waysOn(shown, desk),
  ];
}

/** What can be done with a version that is not the head, or is of another memory than the selected one. */
function waysOn({ version, live, head, text: words }, desk) {
  const { frame } = desk;
  const elsewhere = desk.selected() === "" && version.path !== null;
  const old = !(live && head);
  const may = old && !desk.readonly();
  const name = version.path === null ? "" : plain(version.path);
  return [
    elsewhere && frame.button("Its history", `Show the history of ${name}`, () => desk.showHistory(version)),
    live && !head && frame.button("Compare with head", "Show what changed since", () => desk.compareHead(version)),
    live && !head && !elsewhere && frame.button("Head", "Back to the head", () => desk.open(desk.selected(), "click")),
    may && words !== null && frame.button("Restore…", "Write this text as a new version", () => desk.restore(version)),
    may && words !== null && frame.button("Redact…", "Erase this text for ever", () => desk.redact(version)),
  ].filter(Boolean);
}

/** Bring a line of a text that is one node (or few, with marks) to the top. */
function scrollToLine(body, line) {
  let left = line - 1;
  for (const node of body.childNodes) {
    const words = node.textContent;
    for (let at = words.indexOf("\n"); at >= 0 && left > 0; at = words.indexOf("\n", at + 1)) {
      left -= 1;
      if (left > 0 || node.nodeType !== Node.TEXT_NODE) continue;
      const range = document.createRange();
      range.setStart(node, at + 1);
      range.setEnd(node, Math.min(words.length, at + 2));
      body.scrollTop += range.getBoundingClientRect().top - body.getBoundingClientRect().top - 24;
    }
  }
}
