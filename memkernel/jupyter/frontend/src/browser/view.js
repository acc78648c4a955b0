import { chooser } from "./chooser.js";
import { storeView } from "./store_view.js";

/**
 * The StoreBrowser: a store's memories, one of them, and its history; or the stores to choose
 * from, where none is in use.
 *
 * @param {object} frame from openFrame
 */
export function storeBrowser(frame) {
  let leave = open();

  function open() {
    return frame.get("store") ? storeView(frame) : chooser(frame);
  }

  frame.on("store", () => {
    leave();
    leave = open();
  });
  frame.onClose(() => leave());
}
