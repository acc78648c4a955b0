import { redactButton, restoreButton } from "../diff/dialogs.js";
import { aria, h, plain, replace, text } from "../dom.js";
import * as records from "../records.js";

const TAG = /^(p|h[4-6]|[uo]l|li|blockquote|pre|code|em|strong|s|u|[hb]r|t(able|head|body|[rhd]))$/;
const VIEWS = ["Preview", "Source", "Edit"];

/** One memory, or one version of it: its text, rendered or as it is, and what can be done with it. */
export function contentPane(desk, questions, editor) {
  const { frame } = desk;
  const path = h("span.mk-title");
  const facts = h("div.mk-bar");
  const body = h("div.mk-text", { tabindex: "0", role: "region", "aria-label": "Content" });
  const views = VIEWS.map((label) => {
    const name = label.toLowerCase();
    return frame.button(label, label, () => setView(name), { name });
  });
  const actions = [frame.button("Rename…", "Rename", rename), frame.button("Delete…", "Delete", () => remove())];
  const head = h("div.mk-bar", path, h("span.mk-gap"), views, actions);
  const parts = [head, questions.element, facts, body, editor.element];
  const element = h("div.mk-pane.mk-content", { role: "region", "aria-label": "Memory" }, parts);
  let shown = null;

  function setView(name) {
    if (name === "edit") return desk.edit();
    return editor.leave(() => [frame.set("view", name), paint()]);
  }

  /** @param {object|null} content an answer of `read`, or nothing */
  function put(content) {
    shown = content && { ...content, version: records.version(content.version) };
    paint();
    body.scrollTop = 0;
  }

  function paint() {
    const editing = editor.title();
    const view = editing ? "edit" : frame.get("view");
    const may = Boolean(shown?.live && shown.head) && !frame.get("readonly");
    for (const each of views) {
      each.hidden = each.name === "edit" ? !may : !shown || shown.text === null;
      aria(each, "pressed", each.name === view);
    }
    for (const each of actions) each.hidden = !may || editing;
    facts.hidden = editing || !shown;
    head.hidden = !editing && !shown;
    body.hidden = Boolean(editing);
    replace(path, ...(editing ? [editing] : text(shown?.version.path ?? "")));
    if (!shown) return replace(body, h("p.mk-empty.mk-faint", "Choose a memory, or a version."));
    const state = shown.state && h("span.mk-tag", shown.state);
    replace(facts, h("span.mk-faint", shown.facts), state || null, ...waysOn(shown));
    return paintText(shown, view === "preview");
  }

  function paintText({ text: words, nodes, note, cut }, rendered) {
    body.className = `mk-text mk-${rendered ? "preview" : "source"}`;
    if (words === null) return replace(body, h("p.mk-empty.mk-faint", note));
    if (!rendered) return replace(body, ...text(words));
    return replace(body, nodes.flatMap(drawn), cut ? h("p.mk-faint", "… the rest is in Source") : null);
  }

  /** What can be done with a version that is not the head, or is of another memory than the selected one. */
  function waysOn({ version, restorable, path: key }) {
    return [
      !desk.selected() && key && frame.button("History", "Its history", () => desk.show({ key, version: version.id })),
      restorable && restoreButton(frame, () => desk.restore(version)),
      restorable && redactButton(frame, () => desk.redact(version)),
    ].filter(Boolean);
  }

  function rename() {
    const key = desk.selected();
    const move = async (to) => {
      if (await desk.ask("Rename", "rename", { path: key, new_path: to })) desk.open(to, "click");
    };
    questions.ask("Rename to", [["Rename", move]], key);
  }

  function remove(words = `Delete ${desk.selected()}? Its versions stay.`, expect = shown.sha256) {
    const path = desk.selected();
    const drop = async () => {
      const answer = await desk.ask("Delete", "delete", { path, expect });
      if (answer?.conflict) remove(answer.conflict.words, answer.conflict.sha256);
      else if (answer) desk.show({ key: "", version: "" });
    };
    questions.ask(words, [["Delete", drop]]);
  }

  return { element, put, paint, shown: () => shown, focus: () => body.focus() };
}

/** A node of rendered Markdown: `[tag, children]`, or `["", text]`. */
function drawn([tag, children]) {
  return tag ? [h(TAG.test(tag) ? tag : "span", {}, children.flatMap(drawn))] : text(children);
}
