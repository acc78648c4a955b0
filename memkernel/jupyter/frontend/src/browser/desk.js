import { askRedaction, askRestore } from "../diff/dialogs.js";
import { counted } from "../format.js";
import { memoriesOf } from "./memories.js";

const SETTLE_MS = 120; // a key that is held down asks once, where it comes to rest

/**
 * What the panes of a browser share: what is selected, what is shown of it, and what happens when that changes. The
 * traits `selected`, `selected_version` and `base_version` say the same to Python, and may be set from there.
 */
export function deskOf(frame) {
  const memories = memoriesOf(frame, () => view.head.paint(view.tree.update()));
  let view = null;
  let now = { key: "", version: "" };
  let turn = 0;
  let settling = 0;
  let reading = false;

  /** A request; undefined where it failed, which is said. */
  const ask = (what, method, params) => frame.attempt(what, () => frame.call(method, params));

  function settle(action) {
    clearTimeout(settling);
    settling = setTimeout(action, SETTLE_MS);
  }

  /** Show a memory, or one version of it; whoever edits is asked first. */
  function show(next, line, history = next.key !== now.key) {
    clearTimeout(settling);
    return view.edit.leave(() => read(next, line, history));
  }

  async function read(next, line, history) {
    const mine = (turn += 1);
    now = next;
    remember();
    view.questions.close();
    if (history) view.timeline.show(now.key);
    repaint();
    reading = Boolean(now.key || now.version);
    const content = reading ? await ask("Open", "read", { path: now.key, version: now.version }) : null;
    if (mine !== turn || content === undefined) return;
    reading = false;
    put(content, line);
  }

  function put(content, line) {
    view.content.put(content, line);
    repaint();
    frame.ready(content ? `${now.key}@${content.version[1]}` : "store");
  }

  function remember() {
    for (const [trait, value] of [["selected", now.key], ["selected_version", now.version]]) {
      if (frame.get(trait) !== value) frame.set(trait, value);
    }
  }

  function repaint() {
    view.tree.paint();
    view.timeline.paint();
    view.content.paint();
  }

  async function open(key, how, line) {
    frame.set("tab", "content");
    const opened = show({ key, version: "" }, line, true);
    view.tree.reveal(key);
    await opened;
    if (how === "key") view.content.focus();
  }

  function lookAt({ id }, how) {
    const look = () => show({ key: now.key, version: id }, 0, false);
    if (how === "click") look();
    else settle(look);
  }

  function edit() {
    const shown = view.content.shown();
    if (frame.get("readonly") || !shown?.live || !shown.head || view.edit.title()) return;
    view.edit.open(shown.path);
  }

  function create() {
    const near = now.key.replace(/[^/]*$/, "") || "/";
    frame.set("tab", "content");
    view.edit.leave(() => view.edit.create(near));
  }

  function markBase(version) {
    if (!version) return;
    frame.set("base_version", frame.get("base_version") === version.id ? "" : version.id);
    frame.say(frame.get("base_version") ? `@${version.ordinal} is the base` : "No base is marked");
  }

  /** With the base; else with the version before, which Python knows; the first one with nothing. */
  function compareWith(version) {
    if (!version) return;
    const { id, ordinal } = version;
    const base = view.timeline.find(frame.get("base_version"));
    const before = ordinal === 1 ? { id: "" } : { id: "prev", ordinal: ordinal - 1 };
    const old = base && base.id !== id ? base : before;
    const names = [old.id ? `@${old.ordinal}` : "nothing", `@${ordinal}`];
    compare({ old: old.id, new: id, names, title: view.content.shown()?.path || now.key });
  }

  function compare(pair) {
    view.diff.show(pair);
    frame.call("compared", { old: pair.old, new: pair.new }).catch(() => {}); // the diff itself says what fails
  }

  function filter() {
    const words = view.head.query();
    frame.set("query", words);
    view.search.hide();
    const shown = view.tree.filter(words);
    view.head.paint(shown);
    if (words) frame.say(`${counted(shown, "memory", "memories")} shown`);
  }

  function search() {
    const words = view.head.query().replace(/^\//, "").trim();
    if (!words) return view.head.box.focus();
    frame.set("tab", "memories");
    return view.search.run(words);
  }

  /** Esc: the editor, the diff, the search. */
  function leave() {
    if (view.edit.title()) view.edit.leave();
    else if (view.diff.isOpen()) view.diff.close();
    else if (view.head.box.value) filter((view.head.box.value = ""));
  }

  function reread() {
    view.content.focus();
    return show(now);
  }

  function restore(version) {
    const key = view.content.shown().path;
    const head = now.key ? view.timeline.versions()[0]?.id : ""; // of another memory's timeline nothing is known
    askRestore(frame, view.questions.element, { version, path: version.path, head, done: () => open(key, "key") });
  }

  function redact(version) {
    askRedaction(frame, view.questions.element, { version, done: () => show(now, 0, true) });
  }

  function onSelected() {
    const next = { key: frame.get("selected"), version: frame.get("selected_version") };
    if (next.key === now.key && next.version === now.version) return;
    show(next);
    if (next.key) view.tree.reveal(next.key);
  }

  /** The store changed: what is shown is read again, unless an answer is on its way that knows it already. */
  function onVersions() {
    if (reading || view.timeline.agrees()) return;
    view.timeline.show(now.key);
    if (now.key && !now.version && !view.edit.title()) show(now);
  }

  function start() {
    now = { key: frame.get("selected"), version: frame.get("selected_version") };
    view.timeline.start(now.key);
    memories.load();
    if (now.key) view.tree.reveal(now.key);
    const content = frame.get("content");
    if (content.version || !(now.key || now.version)) put(content.version ? content : null);
    else show(now);
    for (const trait of ["selected", "selected_version"]) frame.on(trait, onSelected);
    frame.on("versions", onVersions);
    frame.on("base_version", () => view.timeline.paint());
    frame.on("readonly", repaint);
  }

  return {
    ...{ frame, memories, ask, start, repaint, show, open, lookAt, edit, create, markBase, compareWith, compare },
    ...{ filter, search, leave, reread, restore, redact },
    attach: (panes) => (view = panes),
    selected: () => now.key,
    version: () => now.version || view.content.shown()?.version.id || "",
    look: (key) => settle(() => show({ key, version: "" })),
    focusTree: () => view.tree.focus(),
  };
}
