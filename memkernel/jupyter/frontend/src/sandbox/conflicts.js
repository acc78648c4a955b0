import { question } from "../diff/dialogs.js";
import { h, plain, text } from "../dom.js";
import { moment, size } from "../format.js";

const HOWS = {
  mine: ["Mine", "Save the text that was put aside over the store's"],
  both: ["Both", "Save it beside the store's, under another name"],
  theirs: ["Discard", "Keep the store's and forget what was put aside"],
};
const OF_DELETION = {
  mine: ["Mine", "Delete the store's as well"],
  theirs: ["Discard", "Keep the store's, and forget the deletion"],
};

/**
 * What was put aside, one line a text, with its difference and the ways to settle it.
 *
 * @param {object} conflict
 * @param {{compare: object, readonly: boolean, done: (said: string) => void}} how
 */
export function conflictItem(frame, conflict, { compare, readonly, done }) {
  const { id, slug, path, operation, at, reason } = conflict;
  const asking = h("div", {});
  const { button, place } = compare.part({
    key: id,
    label: "Show the difference",
    title: "Compare it with what the store holds now",
    props: { class: "mk-button" },
    load: async () => ({ ...(await frame.call("aside", { id })), title: plain(path) }),
  });
  const hows = Object.entries(operation === "deleted" ? OF_DELETION : HOWS);
  const buttons = hows.map(([how, [label, title]]) =>
    frame.button(label, title, () => (how === "theirs" ? ask() : settle(how)), {
      "aria-label": `${label}: ${plain(path)}`,
      "data-how": how,
    }),
  );

  function ask() {
    const asked = question(frame, asking, { label: "Discard what was put aside", danger: true });
    const discard = frame.button("Discard", HOWS.theirs[1], () => settle("theirs").then(asked.close));
    const named = h("code", {}, ...text(path));
    asked.fill(h("span", {}, "Forget what was put aside of ", named, "? Nobody else has it."), discard);
  }

  function settle(how) {
    return frame.attempt(HOWS[how][0], async () => {
      try {
        const { said } = await frame.call("resolve", { id, how, seen: compare.shown(id)?.old ?? null });
        done(said);
      } catch (error) {
        await compare.again(id);
        throw error;
      }
    });
  }

  const facts = [operation, size(conflict.size), `put aside ${moment(at)} UTC`].filter(Boolean).join(" · ");
  const named = h("code", { class: "mk-path" }, `${slug}:`, ...text(path));
  return h(
    "li",
    { class: "mk-conflict" },
    h("div", { class: "mk-conflict-head" }, named, h("span", {}, facts)),
    h("p", { class: "mk-note" }, reason),
    h("div", { class: "mk-choices" }, button, readonly ? null : buttons),
    asking,
    place,
  );
}
