import { h } from "../dom.js";
import { counted, number } from "../format.js";

const ACCESSES = { read_write: "read-write", read_only: "read-only" };

/**
 * The mounted stores: where each is, whether it may be written, how far it is in sync.
 *
 * @param {(mount: object) => HTMLElement|null} action the button of a row
 */
export function mountTable(mounts, action) {
  const heads = ["Store", "Folder", "Access", "State", ""].map((name) =>
    name ? h("th", { scope: "col" }, name) : h("td", {}),
  );
  return h(
    "table",
    { class: "mk-mounts" },
    h("caption", { class: "mk-sr" }, "Mounted stores"),
    h("thead", {}, h("tr", {}, heads)),
    h("tbody", {}, mounts.map((mount) => mountRow(mount, action(mount)))),
  );
}

function mountRow(mount, button) {
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, mount.slug),
    h("td", {}, h("code", {}, mount.folder)),
    h("td", {}, ACCESSES[mount.access]),
    h("td", { class: "mk-state" }, stateWords(mount)),
    h("td", { class: "mk-actions" }, button),
  );
}

/** `in sync`, `2 to save, 1 put aside`; what is not known while a cell runs is said so. */
export function stateWords({ toSave, toBring, putAside, heldBack }) {
  const counts = [
    [toSave, "to save"],
    [toBring, "to bring"],
    [putAside, "put aside"],
    [heldBack, "held back"],
  ];
  const said = counts.filter(([count]) => count).map(([count, words]) => `${number(count)} ${words}`);
  if (toSave === null) said.unshift("not known now");
  return said.join(", ") || "in sync";
}

/** What the wipe guard has held back, with the way to go on all the same. */
export function heldBackLine({ slug, heldBack, held }, button) {
  const named = held.flatMap((path, place) => [place ? ", " : "", h("code", {}, path)]);
  const more = heldBack > held.length ? ", …" : "";
  return h(
    "p",
    { class: "mk-held" },
    h("span", {}, `${counted(heldBack, "deletion")} held back in ${slug} (`, ...named, `${more}). `),
    h("span", {}, "A cell left no file at all there, so nothing was deleted."),
    button,
  );
}
