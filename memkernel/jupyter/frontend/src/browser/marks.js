import { h } from "../dom.js";

// Python marks U+FFF0 and U+FFF1 wherever they are stored, so that none is left in a marked text.
const OPEN = "\ufff0";
const CLOSE = "\ufff1";
const SEALED = /\ufff0(\d+)\ufff1/;

/**
 * A marked text as one string that can be parsed: each mark is sealed as its number between two characters that a
 * marked text never holds. A carriage return before a line's end is no mark here: it is how the line ends.
 *
 * @returns {{source: string, open: (part: string) => Array<Node|string>}} `open` gives back the marks of a part
 */
export function sealed(marked) {
  if (typeof marked === "string") return { source: marked, open: (part) => (part ? [part] : []) };
  const source = marked
    .map((piece, index) => (typeof piece === "string" ? piece : endsLine(marked, index) ? "" : OPEN + index + CLOSE))
    .join("");
  return { source, open: (part) => opened(part, marked) };
}

function endsLine(marked, index) {
  const next = marked[index + 1];
  return marked[index][0] === "⟨CR⟩" && typeof next === "string" && next.startsWith("\n");
}

function opened(part, marked) {
  return part
    .split(SEALED)
    .map((piece, index) => {
      if (index % 2 === 0) return piece;
      const [mark, title] = marked[Number(piece)];
      return h("b", { class: "mk-mark", title }, mark);
    })
    .filter((piece) => piece !== "");
}
