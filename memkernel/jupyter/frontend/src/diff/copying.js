import { h } from "../dom.js";

/**
 * Put a text on the clipboard; where the host does not let us, show it selected.
 *
 * @param {string} what
 * @param {HTMLElement} place where to show it
 * @returns {Promise<boolean>} whether it is on the clipboard
 */
export async function copyText(what, place) {
  try {
    await navigator.clipboard.writeText(what);
    return true;
  } catch {
    // No clipboard outside of https and localhost, and none where the host's frame forbids it.
    const area = h("textarea", { class: "mk-input mk-patch", readonly: true, rows: "8", "aria-label": "Patch" }, what);
    place.prepend(area);
    area.select();
    return false;
  }
}
