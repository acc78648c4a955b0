/** How a diff is shown, by the names of the traits of VersionDiff. */
export const DEFAULTS = { mode: "auto", word_level: true, fold: true, context: 3, ignore_ws: false, wrap: true };

/** Options of one panel, which nobody else sees. */
export function localOptions() {
  const values = { ...DEFAULTS };
  let listener;
  return {
    get: (name) => values[name],
    set(name, value) {
      values[name] = value;
      listener(name);
    },
    on(fn) {
      listener = fn;
      return () => undefined;
    },
  };
}

/** Options that are traits: Python sees and remembers them. */
export function traitOptions(frame) {
  return {
    get: frame.get,
    set: frame.set,
    /** Be told the name of what changed; gives the way to end that. */
    on(fn) {
      const stops = Object.keys(DEFAULTS).map((name) => frame.on(name, () => fn(name)));
      return () => stops.forEach((stop) => stop());
    },
  };
}
