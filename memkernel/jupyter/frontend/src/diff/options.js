/** How a diff is shown, by the names of the traits of VersionDiff. */
export const DEFAULTS = { mode: "auto", words: true, fold: true, context: 3, ignore_whitespace: false, wrap: true };

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
    on: (fn) => listeners.push(fn),
  };
}

/** Options that are traits: Python sees and remembers them. */
export function traitOptions(frame) {
  return {
    get: (name) => frame.get(name) ?? DEFAULTS[name],
    set: (name, value) => frame.set(name, value),
    on: (fn) => Object.keys(DEFAULTS).map((name) => frame.on(name, () => fn(name))),
  };
}
