import { h, plain, text } from "../dom.js";
import { actor, moment, versionLine } from "../format.js";
import { askRedaction, askRestore, tell } from "./dialogs.js";
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
  const redact = frame.button("Redact…", "Erase the text of this version for ever", askToRedact, {
    class: "mk-button mk-danger",
  });
  let direction = 0; // of travel: whoever has not stepped yet asks for nothing beforehand

  takeVersions();

  function takeVersions() {
    versions.take(frame.get("versions") ?? [], { total: frame.get("total") ?? 0, first: frame.get("first") ?? 1 });
  }

  const ordinal = () => frame.get("index") + 1;
  const current = () => versions.at(ordinal());

  function pair(version = current()) {
    const old = oldOf(version);
    return {
      old,
      new: version?.id ?? frame.get("view")?.new ?? "",
      title: plain(frame.get("path")),
      names: [old === "" ? "nothing" : named(versions.of(old)), named(version)],
      label: version ? versionLine(version) : "",
    };
  }

  /** The id of what it is compared with; Python resolves `prev` where the page does not know it. */
  function oldOf(version) {
    const base = frame.get("base");
    if (base === "prev" && version?.ordinal === 1) return "";
    if (base === "prev") return versions.at((version?.ordinal ?? 0) - 1)?.id ?? "prev";
    return Number.isInteger(base) ? (versions.at(base + 1)?.id ?? frame.get("view")?.old ?? "") : base;
  }

  async function go(to) {
    const from = ordinal();
    const version = await frame.attempt("Versions", () => versions.load(to));
    if (!version || to === from) return;
    direction = Math.sign(to - from);
    frame.set("index", to - 1);
  }

  function pin(base) {
    frame.set("base", base);
  }

  function togglePin() {
    const before = versions.of(pair().old);
    pin(frame.get("base") === "prev" ? (before ? before.ordinal - 1 : "") : "prev");
    frame.say(`Compared with ${frame.get("base") === "prev" ? "the version before" : pair().names[0]}`);
  }

  function prefetch() {
    const next = direction && versions.at(ordinal() + direction);
    if (next) panel.prefetch(pair(next));
  }

  function head() {
    const version = current();
    title.replaceChildren(...text(frame.get("path")));
    steps.update(ordinal(), frame.get("base"));
    restore.hidden = redact.hidden = Boolean(frame.get("readonly"));
    restore.disabled = !version || gone(version) || version.id === versions.newest()?.id;
    redact.disabled = !version || gone(version);
  }

  function askToRestore() {
    askRestore(frame, dialog, {
      version: current(),
      path: frame.get("path"),
      head: versions.newest()?.id ?? "",
      done(row) {
        versions.take([row]);
        frame.say(`Restored as @${row[1]}`);
        frame.set("index", row[1] - 1);
      },
    });
  }

  function askToRedact() {
    askRedaction(frame, dialog, {
      version: current(),
      done(rows, kept) {
        versions.take(rows);
        panel.clear();
        change();
        if (kept) tell(frame, dialog, kept);
      },
    });
  }

  /** Another pair: its versions come first where the page does not know them yet (Python may point anywhere). */
  async function change() {
    const base = frame.get("base");
    const looked = [ordinal(), ...(Number.isInteger(base) ? [base + 1] : [])];
    if (!looked.every(versions.at)) {
      const found = await frame.attempt("Versions", () => Promise.all(looked.map(versions.load)));
      if (!found?.every(Boolean)) return;
    }
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
      frame.ready(`${frame.get("index")}:${layout}`);
    },
  });
  frame.root.setAttribute("aria-label", `Versions of ${begin.title}`);
  frame.body.append(
    h("div", { class: "mk-bar" }, title, steps.element, h("span", { class: "mk-gap" }), restore, redact),
    dialog,
    panel.element,
  );
  frame.keys({ ...steps.keys, b: ["Keep what it is compared with, or go back to the version before", togglePin] });
  for (const name of ["index", "base"]) frame.on(name, change);
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
  return [`@${version.ordinal}`, by, actor(version), moment(version.at)].filter(Boolean).join(" · ");
}

/** The view that came with the state, if it is of this pair. */
function viewOfPair(frame, { old, new: fresh }) {
  const view = frame.get("view");
  return view?.rows && view.new === fresh && (view.old === old || old === "prev") ? view : undefined;
}
