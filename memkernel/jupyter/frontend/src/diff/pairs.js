/** So many pairs are kept in the page. */
export const KEPT = 40;

/**
 * The views of pairs that were asked for, the last ones first to stay. A view grows in place as more of it is shown.
 *
 * @param {(question: object) => Promise<object>} ask
 */
export function pairCache(ask, kept = KEPT) {
  const found = new Map();

  function keep(key, view) {
    found.delete(key);
    found.set(key, view);
    if (found.size > kept) found.delete(found.keys().next().value);
    return view;
  }

  return {
    /** @returns {Promise<object>} the view, from here or from the kernel; two who ask at once ask once */
    get(question) {
      const key = keyOf(question);
      if (found.has(key)) return keep(key, found.get(key));
      const answer = Promise.resolve(ask(question)).then(grown);
      answer.catch(() => found.get(key) === answer && found.delete(key));
      return keep(key, answer);
    },
    /** Take a view that came without being asked for. */
    put(question, view) {
      keep(keyOf(question), Promise.resolve(grown(view)));
    },
    has: (question) => found.has(keyOf(question)),
    clear: () => found.clear(),
  };
}

function keyOf({ old, new: fresh, ignore_whitespace: ignoring, context }) {
  return JSON.stringify([old, fresh, Boolean(ignoring), context]);
}

/** Of its own, for what came in a trait is not ours to change. */
function grown(view) {
  return { ...view, rows: [...view.rows] };
}
