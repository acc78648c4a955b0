import { h, replace, text } from "../dom.js";
import { diffPanel } from "../diff/panel.js";
import { counted, glyph, number } from "../format.js";
import { version as versionOf } from "../records.js";
import { line, showRest } from "./entries.js";

/** A tool's call: what was sent, what came back, how long it took, and the versions that it made. */
export function callView(frame, first) {
  const state = h("span", { class: "mk-run-state" });
  const parts = h("div", { class: "mk-run-parts" });
  const summary = h("summary", {}, h("span", { "aria-hidden": "true" }, "→ "), h("code", {}, text(first.text)), " ", state);
  const details = h("details", { class: "mk-run-tool" }, summary, parts);
  const made = madeView(frame);
  const element = h("div", { class: "mk-run-entry mk-run-call" }, details, made.element);
  const view = {
    n: first.n,
    element,
    update(entry) {
      view.n = entry.n;
      element.classList.toggle("mk-run-failed", Boolean(entry.error));
      state.textContent = outcome(entry);
      replace(parts, part("Arguments", entry.arguments), part(entry.error ? "Error" : "Result", entry.result));
      showRest(frame, parts, entry, view.update);
      made.update(entry.versions ?? [], entry.more_versions ?? 0);
    },
    add() {},
    spoken: () => `${line(first.text)}: ${state.textContent}`,
    dispose() {
      made.dispose();
      element.remove();
    },
  };
  view.update(first);
  return view;
}

function outcome({ result, error, ms }) {
  if (result === null || result === undefined) return "running…";
  return error ? `error · ${took(ms)}` : took(ms);
}

function part(title, marked) {
  if (marked === null || marked === undefined || marked === "") return null;
  return h(
    "div",
    { class: "mk-run-part" },
    h("div", { class: "mk-run-part-title" }, title),
    h("div", { class: "mk-run-pre", role: "region", tabindex: "0", "aria-label": title }, text(marked)),
  );
}

/** Its versions, each a button that opens what it changed. */
function madeView(frame) {
  const buttons = h("div", { class: "mk-run-versions" });
  const place = h("div", { class: "mk-run-diff" });
  const element = h("div", { class: "mk-run-made", hidden: true }, buttons, place);
  let open = null; // {button, panel}

  function update(versions, more) {
    element.hidden = !versions.length;
    if (buttons.dataset.shown === String(versions.map(([row]) => row[0]))) return;
    buttons.dataset.shown = String(versions.map(([row]) => row[0]));
    close();
    const rest = more ? h("span", { class: "mk-faint" }, `and ${counted(more, "more version")}`) : null;
    replace(buttons, versions.map(versionButton), rest);
  }

  function versionButton([row, added, removed]) {
    const version = versionOf(row);
    const button = frame.button("", "Show what this version changed", () => toggle(button, version), {
      class: "mk-button mk-run-version",
      "aria-expanded": "false",
    });
    button.append(h("span", { "aria-hidden": "true" }, `${glyph(version)} `), ...named(version), lines(added, removed));
    button.removeAttribute("aria-label");
    return button;
  }

  function toggle(button, version) {
    const again = open?.button === button;
    close();
    if (again) return;
    const panel = diffPanel(frame, {
      old: "prev",
      new: version.id,
      title: version.path === null ? version.id : line(version.path),
      names: [version.ordinal > 1 ? `@${version.ordinal - 1}` : "nothing", `@${version.ordinal}`],
      versions: [version],
      onClose: () => (close(), button.focus()),
    });
    place.append(panel.element);
    button.setAttribute("aria-expanded", "true");
    open = { button, panel };
  }

  function close() {
    open?.panel.dispose();
    open?.button.setAttribute("aria-expanded", "false");
    open = null;
  }

  return { element, update, dispose: close };
}

function named(version) {
  return [h("span", {}, version.path === null ? "redacted" : text(version.path)), ` @${version.ordinal} `];
}

function lines(added, removed) {
  if (added === null || added === undefined) return "";
  const title = `${counted(added, "line")} added, ${number(removed)} removed`;
  return h("span", { class: "mk-run-lines", title }, `+${number(added)} −${number(removed)}`);
}

/** `12 ms`, `1.5 s` */
export function took(ms) {
  return ms < 1000 ? `${number(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
