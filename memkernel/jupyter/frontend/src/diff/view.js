import { aria, h, plain, replace, text } from "../dom.js";
import { versionLine } from "../format.js";
import { askRedaction, askRestore, redactButton, restoreButton } from "./dialogs.js";
import { history } from "./history.js";
import { traitOptions } from "./options.js";
import { diffPanel } from "./panel.js";
import { stepBar } from "./steps.js";

/** VersionDiff: any two versions of a memory, and stepping along all of them. */
export function versionDiff(frame) {
  const { get, set } = frame;
  const versions = history((version, before) => frame.call("history", { version, before }));
  const place = h("div");
  const steps = stepBar(frame, { history: versions, go, pin: (base) => look({ base }) });
  const restore = restoreButton(frame, askToRestore);
  const redact = redactButton(frame, askToRedact);
  const title = plain(get("path"));
  const current = () => versions.at(shown.index + 1);
  const traits = () => ({ index: get("index"), base: get("base") });
  let shown = traits();
  let wanted = shown;
  let direction = 0; // of travel: whoever has not stepped yet asks for nothing beforehand

  function takeVersions() {
    versions.take(get("versions"), { total: get("total"), first: get("first") });
  }

  function pair({ index, base }) {
    const version = versions.at(index + 1);
    const label = version && versionLine(version);
    return { index, base, title, label, old: oldOf(index, base), new: version?.id ?? get("view").new };
  }

  /** The id of what it is compared with; Python resolves `prev` where the page does not know it. */
  function oldOf(index, base) {
    if (Number.isInteger(base)) return versions.at(base + 1)?.id ?? get("view").old;
    if (base !== "prev") return base;
    return index ? (versions.at(index)?.id ?? "prev") : "";
  }

  /** Look at another pair. It is what is looked at once it is painted: if that fails, all stays as it was. */
  async function look(change) {
    const next = (wanted = { ...wanted, ...change });
    const indexes = new Set([next.index, next.base].filter(Number.isInteger));
    const done = await frame.attempt("Versions", async () => {
      await Promise.all([...indexes].map((index) => versions.load(index + 1)));
      return next === wanted && panel.show(pair(next));
    });
    if (done !== undefined || next !== wanted) return;
    wanted = shown;
    head();
  }

  function onPainted(layout, { index, base }) {
    shown = { index, base };
    for (const name of ["index", "base"]) if (get(name) !== shown[name]) set(name, shown[name]);
    head();
    if (direction && versions.at(index + direction + 1)) panel.prefetch(pair({ index: index + direction, base }));
    frame.ready(`${index}:${layout}`);
  }

  function onTrait() {
    const { index, base } = traits();
    if (index !== shown.index || base !== shown.base) look({ index, base });
  }

  function go(ordinal) {
    direction = Math.sign(ordinal - 1 - shown.index);
    look({ index: ordinal - 1 });
  }

  async function togglePin() {
    const { index, base } = wanted;
    const pinned = index ? index - 1 : "";
    const [next, name] = base === "prev" ? [pinned, index ? `@${index}` : "nothing"] : ["prev", "the version before"];
    await look({ base: next });
    frame.say(`Compared with ${name}`);
  }

  function head() {
    const version = current();
    const isGone = !version || version.redactedAt || version.operation === "deleted";
    steps.update(shown);
    restore.hidden = redact.hidden = get("readonly");
    restore.disabled = isGone || version.ordinal === versions.last();
    redact.disabled = isGone;
  }

  function askToRestore() {
    const done = (row) => {
      versions.take([row]);
      look({ index: row[1] - 1 });
    };
    askRestore(frame, place, { version: current(), path: get("path"), head: versions.at(versions.last())?.id, done });
  }

  function askToRedact() {
    const done = (rows, kept) => {
      versions.take(rows);
      panel.clear();
      look({});
      if (kept) replace(place, h("div.mk-dialog", { role: "status" }, kept));
    };
    askRedaction(frame, place, { version: current(), done });
  }

  takeVersions();
  const begin = pair(shown);
  const view = viewOf(get("view"), begin);
  const panel = diffPanel(frame, { ...begin, view, options: traitOptions(frame), keysWithin: frame.root, onPainted });
  const name = h("span.mk-title", text(get("path")));
  aria(frame.root, "label", `Versions of ${title}`);
  frame.body.append(h("div.mk-bar", name, steps.elements, h("span.mk-gap"), restore, redact), place, panel.element);
  frame.keys({ ...steps.keys, b: ["Keep what it is compared with, or go back to the version before", togglePin] });
  for (const trait of ["index", "base"]) frame.on(trait, onTrait);
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
