/** How a diff is shown, by the names of the traits of VersionDiff. */
export const DEFAULTS = { mode: "auto", word_level: true, fold: true, context: 3, ignore_ws: false, wrap: true };

/** Options of one panel, which nobody else sees. */
export function localOptions(initial = {}) {
  const values = { ...DEFAULTS, ...initial };
  const listeners = [];
  return {
    get: (name) => values[name],
    set(name, value) {
      values[name] = value;
      for (const fn of listeners) fn(name);
    },
    /** Be told the name of what changed; gives the way to end that. */
    on(fn) {
      listeners.push(fn);
      return () => listeners.splice(listeners.indexOf(fn), 1);
    },
  };
}

/** Options that are traits: Python sees and remembers them. */
export function traitOptions(frame) {
  return {
    get: (name) => frame.get(name) ?? DEFAULTS[name],
    set: (name, value) => frame.set(name, value),
    on(fn) {
      const stops = Object.keys(DEFAULTS).map((name) => frame.on(name, () => fn(name)));
      return () => stops.forEach((stop) => stop());
    },
  };
}
