import { h, text } from "../dom.js";
import { actor, glyph, moment, versionLine } from "../format.js";
import { askRedaction, askRestore } from "./dialogs.js";
import { history } from "./history.js";
import { traitOptions } from "./options.js";
import { diffPanel } from "./panel.js";
import { stepBar } from "./steps.js";

/** VersionDiff: any two versions of a memory, and stepping along all of them. */
export function versionDiff(frame) {
  const versions = history((version, before) => frame.call("history", { version, before }));
  const dialog = h("div", { class: "mk-dialogs" });
  const title = h("span", { class: "mk-title" });
  const steps = stepBar(frame, { history: versions, go, pin });
  const restore = frame.button("Restore…", "Write this text as a new version", askToRestore);
  const redact = frame.button("Redact…", "Erase the text of this version for ever", askToRedact, { class: "mk-button mk-danger" });
  let direction = 0; // of travel: whoever has not stepped yet asks for nothing beforehand

  takeVersions();

  function takeVersions() {
    versions.take(frame.get("versions") ?? [], { total: frame.get("total") ?? 0, first: frame.get("first") ?? 1 });
  }

  function current() {
    return versions.of(frame.get("new"));
  }

  function pair(version = current()) {
    const old = frame.get("old") === "prev" ? before(version) : frame.get("old");
    const known = versions.of(old);
    return {
      old,
      new: version?.id ?? frame.get("new"),
      title: titleWords(),
      names: [old === "" ? "nothing" : named(known), named(version)],
      label: version ? versionLine(version) : "",
    };
  }

  /** The id before it; Python resolves `prev` where the page does not know it. */
  function before(version) {
    if (!version) return "prev";
    if (version.ordinal === 1) return "";
    return versions.at(version.ordinal - 1)?.id ?? "prev";
  }

  function titleWords() {
    return String(frame.get("path") ?? "");
  }

  async function go(ordinal) {
    const from = current()?.ordinal ?? 0;
    const version = await frame.attempt("Versions", () => versions.load(ordinal));
    if (!version) return;
    if (ordinal !== from) direction = Math.sign(ordinal - from);
    frame.set("new", version.id);
  }

  function pin(old) {
    frame.set("old", old);
  }

  function togglePin() {
    pin(frame.get("old") === "prev" ? pair().old : "prev");
    frame.say(frame.get("old") === "prev" ? "Compared with the version before" : `Compared with ${pair().names[0]}`);
  }

  function prefetch() {
    const next = versions.at((current()?.ordinal ?? 0) + direction);
    if (direction && next) panel.prefetch(pair(next));
  }

  function head() {
    const version = current();
    const readonly = frame.get("readonly");
    title.replaceChildren(...text(titleWords()));
    steps.update(version?.ordinal ?? versions.last(), frame.get("old"));
    restore.hidden = redact.hidden = Boolean(readonly);
    restore.disabled = !version || gone(version) || version.id === versions.newest()?.id;
    redact.disabled = !version || Boolean(version.redactedAt) || version.operation === "deleted";
  }

  function askToRestore() {
    askRestore(frame, dialog, {
      version: current(),
      path: frame.get("path"),
      head: versions.newest()?.id ?? "",
      done(row) {
        versions.take([row]);
        frame.say(`Restored as @${row[1]}`);
        frame.set("new", row[0]);
      },
    });
  }

  function askToRedact() {
    askRedaction(frame, dialog, {
      version: current(),
      done(rows) {
        versions.take(rows);
        panel.clear();
        change();
      },
    });
  }

  function change() {
    head();
    panel.show(pair());
  }

  const begin = pair();
  const panel = diffPanel(frame, {
    ...begin,
    view: viewOfPair(frame, begin),
    options: traitOptions(frame),
    keysWithin: frame.root,
    onPainted({ layout }) {
      prefetch();
      frame.ready(`${current()?.ordinal ?? ""}:${layout}`);
    },
  });
  frame.root.setAttribute("aria-label", `Versions of ${titleWords()}`);
  frame.body.append(
    h("div", { class: "mk-bar" }, title, steps.element, h("span", { class: "mk-gap" }), restore, redact),
    dialog,
    panel.element,
  );
  frame.keys({ ...steps.keys, b: ["Keep what it is compared with, or go back to the version before", togglePin] });
  for (const name of ["new", "old"]) frame.on(name, change);
  frame.on("versions", () => {
    takeVersions();
    head();
  });
  frame.on("view", () => panel.put(frame.get("view")));
  head();
}

function gone(version) {
  return Boolean(version.redactedAt) || version.operation === "deleted";
}

/** `@3 · modified · session sesn_… · 2026-11-30 09:21` */
function named(version) {
  if (!version) return "";
  const by = version.redactedAt ? `redacted ${moment(version.redactedAt)}` : version.operation;
  return [`${glyph(version)} @${version.ordinal}`, by, actor(version), moment(version.at)].filter(Boolean).join(" · ");
}

/** The view that came with the state, if it is of this pair. */
function viewOfPair(frame, { old, new: fresh }) {
  const view = frame.get("view");
  return view?.rows && view.new === fresh && (view.old === old || old === "prev") ? view : undefined;
}
