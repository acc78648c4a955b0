import { h, replace } from "../dom.js";

/**
 * Put a text on the clipboard; where the host does not let us, show it selected.
 *
 * @param {string} what
 * @param {HTMLElement} place where to show it
 * @returns {Promise<string>} where it is, for the person
 */
export async function copyText(what, place) {
  try {
    await navigator.clipboard.writeText(what);
    return "The patch is on the clipboard";
  } catch {
    // No clipboard outside of https and localhost, and none where the host's frame forbids it.
    const area = h("textarea.mk-input.mk-patch", { readonly: true, rows: "8", "aria-label": "Patch" }, what);
    replace(place, area);
    area.select();
    return "The patch is below, selected";
  }
}
