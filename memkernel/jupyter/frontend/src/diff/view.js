import { h, plain, replace, text } from "../dom.js";
import { versionLine } from "../format.js";
import { askRedaction, askRestore } from "./dialogs.js";
import { history } from "./history.js";
import { traitOptions } from "./options.js";
import { diffPanel } from "./panel.js";
import { stepBar } from "./steps.js";

/** VersionDiff: any two versions of a memory, and stepping along all of them. */
export function versionDiff(frame) {
  const { get, set } = frame;
  const versions = history((version, before) => frame.call("history", { version, before }));
  const place = h("div");
  const steps = stepBar(frame, { history: versions, go, pin: (base) => set("base", base) });
  const restore = frame.button("Restore…", "Write this text as a new version", askToRestore);
  const redact = frame.button("Redact…", "Erase this text for ever", askToRedact, { class: "mk-button mk-danger" });
  const title = plain(get("path"));
  const ordinal = () => get("index") + 1;
  const current = () => versions.at(ordinal());
  let direction = 0; // of travel: whoever has not stepped yet asks for nothing beforehand

  function takeVersions() {
    versions.take(get("versions"), { total: get("total"), first: get("first") });
  }

  function pair(version = current()) {
    return {
      old: oldOf(version),
      new: version?.id ?? get("view").new,
      title,
      label: version && versionLine(version),
    };
  }

  /** The id of what it is compared with; Python resolves `prev` where the page does not know it. */
  function oldOf(version) {
    const base = get("base");
    if (Number.isInteger(base)) return versions.at(base + 1)?.id ?? get("view").old;
    if (base !== "prev") return base;
    return version?.ordinal === 1 ? "" : (versions.at(version?.ordinal - 1)?.id ?? "prev");
  }

  async function go(to) {
    const from = ordinal();
    const version = await frame.attempt("Versions", () => versions.load(to));
    if (!version || to === from) return;
    direction = Math.sign(to - from);
    set("index", to - 1);
  }

  function togglePin() {
    const before = versions.of(oldOf(current()));
    const base = get("base") !== "prev" ? "prev" : before ? before.ordinal - 1 : "";
    set("base", base);
    frame.say(`Compared with ${base === "prev" ? "the version before" : before ? `@${before.ordinal}` : "nothing"}`);
  }

  function head() {
    const version = current();
    const isGone = !version || version.redactedAt || version.operation === "deleted";
    steps.update(ordinal(), get("base"));
    restore.hidden = redact.hidden = get("readonly");
    restore.disabled = isGone || ordinal() === versions.last();
    redact.disabled = isGone;
  }

  function askToRestore() {
    const done = (row) => {
      versions.take([row]);
      set("index", row[1] - 1);
    };
    askRestore(frame, place, { version: current(), path: get("path"), head: versions.at(versions.last())?.id, done });
  }

  function askToRedact() {
    const done = (rows, kept) => {
      versions.take(rows);
      panel.clear();
      change();
      if (kept) replace(place, h("div.mk-dialog", { role: "status" }, kept));
    };
    askRedaction(frame, place, { version: current(), done });
  }

  /** Another pair: its versions come first where the page does not know them yet (Python may point anywhere). */
  async function change() {
    const base = get("base");
    const looked = [ordinal(), ...(Number.isInteger(base) ? [base + 1] : [])];
    if (!looked.every(versions.at)) {
      const found = await frame.attempt("Versions", () => Promise.all(looked.map(versions.load)));
      if (!found) return;
    }
    head();
    panel.show(pair());
  }

  function onPainted(layout) {
    const next = direction && versions.at(ordinal() + direction);
    if (next) panel.prefetch(pair(next));
    frame.ready(`${get("index")}:${layout}`);
  }

  takeVersions();
  const begin = pair();
  const view = viewOf(get("view"), begin);
  const panel = diffPanel(frame, { ...begin, view, options: traitOptions(frame), keysWithin: frame.root, onPainted });
  const name = h("span.mk-title", text(get("path")));
  frame.root.setAttribute("aria-label", `Versions of ${title}`);
  frame.body.append(h("div.mk-bar", name, steps.elements, h("span.mk-gap"), restore, redact), place, panel.element);
  frame.keys({ ...steps.keys, b: ["Keep what it is compared with, or go back to the version before", togglePin] });
  for (const trait of ["index", "base"]) frame.on(trait, change);
  frame.on("versions", () => {
    takeVersions();
    head();
  });
  frame.on("readonly", head);
  frame.on("view", () => panel.put(get("view")));
  head();
}

/** What came with the state, if it is of this pair. */
function viewOf(view, { old, new: fresh }) {
  return view.new === fresh && ["prev", view.old].includes(old) ? view : undefined;
}
