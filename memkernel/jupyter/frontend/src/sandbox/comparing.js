import { h, plain, text } from "../dom.js";
import { diffPanel } from "../diff/panel.js";

/**
 * Differences that open and close under their own line. What is open stays so when the line is drawn anew.
 *
 * @returns {{part: (what: object) => {button: HTMLElement, place: HTMLElement},
 *   shown: (key: string) => object|undefined, again: (key: string) => Promise<void>,
 *   forget: (keys: Set<string>) => void}}
 */
export function comparisons(frame) {
  const open = new Map(); // key -> {panel, pair}

  /**
   * A button that opens and closes one.
   *
   * @param {{key: string, label: *, title: string, load: () => object|Promise<object>}} what `load` gives the pair that
   *   diffPanel wants
   */
  function part({ key, label, title, load, props = {} }) {
    const place = h("div", { class: "mk-under" });
    const button = h("button", { type: "button", title, "aria-expanded": "false", onclick: toggle, ...props }, label);
    const now = open.get(key);
    if (now) put(now);

    function put({ panel }) {
      place.append(panel.element);
      button.setAttribute("aria-expanded", "true");
    }

    function toggle() {
      return open.has(key) ? close() : frame.attempt("Compare", show);
    }

    async function show() {
      const pair = await load();
      if (open.has(key)) return;
      const made = { pair, load, panel: diffPanel(frame, { ...pair, onClose: close }) };
      open.set(key, made);
      put(made);
    }

    function close() {
      open.get(key)?.panel.dispose();
      open.delete(key);
      button.setAttribute("aria-expanded", "false");
      button.focus();
    }

    return { button, place };
  }

  return {
    part,
    shown: (key) => open.get(key)?.pair,
    /** The store may have moved on: compare with what it holds now. */
    async again(key) {
      const now = open.get(key);
      if (!now) return;
      now.pair = await now.load();
      await now.panel.show(now.pair);
    },
    /** Close those that are gone. */
    forget(keys) {
      for (const [key, { panel }] of open) {
        if (keys.has(key)) continue;
        panel.dispose();
        open.delete(key);
      }
    },
  };
}

/** The way to what a version changed. */
export function versionPart(compare, change, isNamed) {
  const label = h("code", {}, isNamed ? `${change.slug}:` : "", ...text(change.path));
  const before = change.outcome === "created" ? "nothing" : `@${change.ordinal - 1}`;
  return compare.part({
    key: change.version,
    label,
    title: `Show what @${change.ordinal} changed`,
    props: { class: "mk-button mk-quiet mk-path" },
    load: () => ({
      old: "prev",
      new: change.version,
      title: plain(change.path),
      names: [before, `@${change.ordinal}`],
    }),
  });
}
