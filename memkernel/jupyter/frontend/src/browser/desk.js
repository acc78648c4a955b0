import { askRedaction, askRestore } from "../diff/dialogs.js";
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
  let telling = false;

  /** A request; undefined where it failed, which is said. */
  const ask = (what, method, params) => frame.attempt(what, () => frame.call(method, params));

  function settle(action) {
    clearTimeout(settling);
    settling = setTimeout(action, SETTLE_MS);
  }

  /** Show a memory, or one version of it; whoever edits is asked first. */
  function show(next) {
    clearTimeout(settling);
    return view.edit.leave(() => read(next));
  }

  async function read(next) {
    const mine = (turn += 1);
    now = next;
    telling = true;
    frame.model.set("selected", now.key);
    frame.set("selected_version", now.version); // both are one message
    telling = false;
    view.questions.close();
    paintLists();
    reading = Boolean(now.key || now.version);
    const content = reading ? await ask("Open", "read", { path: now.key, version: now.version }) : null;
    if (mine !== turn || content === undefined) return;
    reading = false;
    put(content);
  }

  function put(content) {
    view.content.put(content);
    paintLists();
    frame.ready(content ? `${now.key}@${content.version[1]}` : "store");
  }

  function paintLists() {
    view.tree.paint();
    view.timeline.paint();
  }

  async function open(key, how) {
    frame.set("tab", "content");
    const opened = show({ key, version: "" });
    view.tree.reveal(key);
    await opened;
    if (how === "key") view.content.focus();
  }

  function lookAt({ id }, how) {
    const look = () => show({ key: now.key, version: id });
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
    const { id, ordinal } = version;
    const base = frame.get("base_version") === id ? "" : id;
    frame.set("base_version", base);
    frame.say(base ? `@${ordinal} is the base` : "No base");
  }

  /** With the base, which may be of another memory; else with the version before, which Python knows. */
  function compareWith(version) {
    const base = frame.get("base_version");
    if (version) compare(base && base !== version.id ? base : "prev", version.id);
  }

  function compare(old, id) {
    const pair = { old, new: id };
    view.diff.show({ ...pair, title: view.content.shown()?.path });
    frame.call("compared", pair).catch(() => {}); // the diff itself says what fails
  }

  function filter() {
    const words = view.head.query();
    frame.set("query", words);
    view.search.hide();
    view.head.paint(view.tree.filter(words));
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
    else if (view.head.box.value) {
      filter((view.head.box.value = ""));
      view.tree.focus(); // a hit that had the focus is gone
    }
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
    askRedaction(frame, view.questions.element, { version, done: () => show(now) });
  }

  function onSelected() {
    const next = { key: frame.get("selected"), version: frame.get("selected_version") };
    if (telling || (next.key === now.key && next.version === now.version)) return;
    show(next);
    if (next.key) view.tree.reveal(next.key);
  }

  /** Where a newer head is there, it is shown, unless it is on its way, or somebody edits. */
  function onVersions() {
    view.timeline.show();
    const [head] = view.timeline.versions();
    if (now.key && !now.version && !reading && !view.edit.title() && head?.id !== desk.version()) show(now);
  }

  function start() {
    now = { key: frame.get("selected"), version: frame.get("selected_version") };
    view.timeline.show();
    memories.load();
    if (now.key) view.tree.reveal(now.key);
    const content = frame.get("content");
    if (content.version || !(now.key || now.version)) put(content.version ? content : null);
    else show(now);
    for (const trait of ["selected", "selected_version"]) frame.on(trait, onSelected);
    frame.on("versions", onVersions);
    frame.on("base_version", () => view.timeline.paint());
    frame.on("readonly", view.content.paint);
  }

  const desk = {
    ...{ frame, memories, ask, start, show, open, lookAt, edit, create, markBase, compareWith, compare },
    ...{ filter, search, leave, reread, restore, redact },
    attach: (panes) => (view = panes),
    selected: () => now.key,
    version: () => now.version || view.content.shown()?.version.id || "",
    look: (key) => settle(() => show({ key, version: "" })),
    edited: () => view.content.paint(),
    focusTree: () => view.tree.focus(),
  };
  return desk;
}
