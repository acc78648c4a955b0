import { askRedaction, askRestore } from "../diff/dialogs.js";
import { counted } from "../format.js";
import { memoriesOf } from "./memories.js";
import { rawPath } from "./paths.js";

const SETTLE_MS = 120; // a key that is held down asks once, where it comes to rest

/**
 * What the panes of a browser share: what is selected, what is shown of it, and what happens when that changes. The
 * traits `selected`, `selected_version` and `base_version` say the same to Python, and may be set from there.
 */
export function deskOf(frame) {
  const drafts = new Map();
  const memories = memoriesOf(frame, onMemories);
  let view = null;
  let now = { key: "", version: "" };
  let turn = 0;
  let settling = 0;
  let reading = false;

  const readonly = () => frame.get("readonly") || frame.get("archived");

  function onMemories() {
    view.tree.update();
    paintHead();
    if (view.content.shown() === null) view.content.put(null);
  }

  function paintHead() {
    const words = view.head.query();
    view.head.paint(words ? view.tree.filter(words) : null);
  }

  function settle(action) {
    clearTimeout(settling);
    settling = setTimeout(action, SETTLE_MS);
  }

  /** Show a memory, or one version, and make it known. */
  async function show(next, { line = 0, timeline = next.key !== now.key } = {}) {
    clearTimeout(settling);
    const mine = (turn += 1);
    now = next;
    remember();
    if (view.edit.isOpen()) view.edit.suspend();
    view.questions.close();
    if (timeline) view.timeline.show(next.key);
    repaint();
    if (!next.key && !next.version) return view.content.put(null);
    reading = true;
    const content = await frame.attempt("Open", () => frame.call("read", { path: next.key, version: next.version }));
    if (mine !== turn) return undefined;
    reading = false;
    return content && put(content, line);
  }

  function put(content, line = 0) {
    view.content.put(content, { line });
    if (drafts.has(now.key) && !now.version && !readonly()) edit();
    repaint();
    ready();
  }

  function remember() {
    for (const [trait, value] of [["selected", now.key], ["selected_version", now.version]]) {
      if (frame.get(trait) !== value) frame.set(trait, value);
    }
  }

  function ready() {
    const ordinal = view.content.shown()?.version.ordinal;
    frame.ready(ordinal ? `${now.key}@${ordinal}` : "store");
  }

  function repaint() {
    view.tree.paint();
    view.timeline.repaint();
  }

  async function open(key, how, { line = 0 } = {}) {
    const opened = show({ key, version: "" }, { line });
    frame.set("tab", "content");
    view.tree.reveal(key);
    await opened;
    if (how === "key") view.content.focus();
  }

  function lookAt(version, how) {
    const next = { key: now.key, version: version.id };
    if (how === "click") return show(next, { timeline: false });
    return settle(() => show(next, { timeline: false }));
  }

  async function edit() {
    const shown = view.content.shown();
    if (readonly() || !shown?.live || !shown.head || view.edit.isOpen()) return;
    await view.edit.open(keyOf(shown.version));
    view.content.paint();
  }

  function create() {
    if (readonly()) return;
    if (view.edit.isOpen()) view.edit.suspend();
    frame.set("tab", "content");
    view.edit.create(`${now.key.slice(0, now.key.lastIndexOf("/"))}/`);
    view.content.paint();
  }

  function markBase(version) {
    if (!version) return;
    frame.set("base_version", frame.get("base_version") === version.id ? "" : version.id);
    frame.say(frame.get("base_version") ? `@${version.ordinal} is the base` : "No base is marked");
  }

  function compareWith(version) {
    if (!version) return;
    const base = view.timeline.find(frame.get("base_version"));
    compareTwo(base && base.id !== version.id ? base : before(version), version);
  }

  /** The version before it: a record where it is here, else `prev`, which Python knows; null before the first. */
  function before({ ordinal }) {
    if (ordinal === 1) return null;
    const near = now.key && view.timeline.versions().find((each) => each.ordinal === ordinal - 1);
    return near || { id: "prev", ordinal: ordinal - 1 };
  }

  function compareTwo(old, next) {
    const names = [old ? `@${old.ordinal}` : "nothing", `@${next.ordinal}`];
    compare({ old: old?.id ?? "", new: next.id, names, title: keyOf(next) || "(redacted)" });
  }

  function compare(pair) {
    view.diff.show(pair);
    frame.call("compared", { old: pair.old, new: pair.new }).catch(() => undefined); // the diff itself says what fails
  }

  function filter() {
    const words = view.head.query();
    frame.set("query", words);
    view.search.close();
    const shown = view.tree.filter(words);
    view.head.paint(words ? shown : null);
    if (words) frame.say(`${counted(shown, "memory", "memories")} shown`);
  }

  function search() {
    const words = view.head.query().replace(/^\//, "").trim();
    if (!words) return view.head.focus();
    frame.set("tab", "memories");
    view.tree.element.hidden = true;
    return view.search.run(words);
  }

  function leave() {
    if (view.edit.isOpen()) view.edit.leave();
    else if (view.diff.isOpen()) view.diff.close();
    else view.search.close();
  }

  function keyOf(version) {
    return version.path === null ? "" : rawPath(version.path);
  }

  function restore(version) {
    const head = now.key ? (view.timeline.versions()[0]?.id ?? "") : "";
    const key = keyOf(version) || now.key;
    const done = (row) => [frame.say(`Restored as @${row[1]}`), show({ key, version: "" }, { timeline: true })];
    askRestore(frame, view.questions.element, { version, path: key, head, done });
  }

  function redact(version) {
    const done = () => show(now, { timeline: true });
    askRedaction(frame, view.questions.element, { version, done });
  }

  function moved(key, to) {
    const draft = drafts.get(key);
    drafts.delete(key);
    if (draft) drafts.set(to, { ...draft, key: to });
    show({ key: to, version: "" });
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
    if (now.key && !now.version && !view.edit.isOpen()) show(now, { timeline: false });
  }

  function start() {
    now = { key: frame.get("selected"), version: frame.get("selected_version") };
    memories.load();
    view.timeline.show(now.key, { fromState: true });
    const content = frame.get("content");
    if (content?.version) put(content);
    else if (now.key || now.version) show(now, { timeline: false });
    else view.content.put(null);
    if (now.key) view.tree.reveal(now.key);
    paintHead();
    ready();
    for (const trait of ["selected", "selected_version"]) frame.on(trait, onSelected);
    for (const trait of ["readonly", "archived", "reason", "total"]) frame.on(trait, () => [paintHead(), view.content.paint()]);
    frame.on("versions", onVersions);
    frame.on("base_version", () => view.timeline.repaint());
  }

  return {
    ...{ frame, drafts, memories, readonly, start, repaint, open, lookAt, edit, create, markBase, compareWith, compare },
    ...{ filter, search, leave, keyOf, moved, restore, redact },
    attach: (panes) => (view = panes),
    selected: () => now.key,
    version: () => now.version || view.content.shown()?.version.id || "",
    base: () => frame.get("base_version"),
    shownSha: () => view.content.shown()?.sha256 ?? "",
    look: (key) => settle(() => show({ key, version: "" })),
    reread: () => show(now, { timeline: false }),
    gone: () => show({ key: "", version: "" }),
    // By the version's id, for its memory may be deleted, or be somewhere else by now.
    showHistory(version) {
      frame.set("tab", "content");
      return show({ key: keyOf(version), version: version.id });
    },
    focusTree: () => view.tree.focus(),
    compareHead: (version) => compareTwo(version, view.timeline.versions()[0]),
    refresh: () => frame.attempt("Refresh", () => frame.call("refresh")),
    leaveStore: () => frame.attempt("Show the stores", () => frame.call("choose", { store: "" })),
  };
}
