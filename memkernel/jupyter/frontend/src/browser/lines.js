/**
 * A text as a textarea can hold it. A textarea makes every line end a line feed, so what it held must be known.
 *
 * @param {string} text as it is stored
 * @returns {{shown: string, restored: (edited: string) => string}|null} null where the line ends are mixed, or where a
 *   carriage return stands alone: such a text would not survive
 */
export function editable(text) {
  if (!text.includes("\r")) return { shown: text, restored: (edited) => edited };
  const shown = text.replaceAll("\r\n", "\n");
  const restored = (edited) => edited.replaceAll("\n", "\r\n");
  return !shown.includes("\r") && restored(shown) === text ? { shown, restored } : null;
}
