import { h, hasFocus, replace } from "../dom.js";
import { counted, number } from "../format.js";
import { endsInPlace, unfolded } from "./layout.js";
import { lineElements, table } from "./table.js";

/**
 * The rows of one view in a scrolled box, and what is asked for while looking at them: lines of a fold, further rows.
 *
 * @param {{box: HTMLElement, foot: HTMLElement, ask: (view: object) => object, onDrawn: () => void}} parts `ask`: the
 *   parameters of the request that gave this view
 */
export function rowsView(frame, { box, foot, ask, onDrawn }) {
  let shown;
  let layout;

  const elements = (rows, inPlace) => lineElements(rows, { layout, inPlace, expand });

  /** Draw a view from its beginning. */
  function draw(view, newLayout, names) {
    const hadFocus = hasFocus(box);
    shown = view;
    layout = newLayout;
    if (view.rows.length) {
      const drawn = table(layout, names);
      drawn.append(h("tbody", elements(view.rows)));
      replace(box, drawn);
    } else {
      replace(box, h("div.mk-faint.mk-empty", view.notes.length ? "There is no text to compare" : "No difference"));
    }
    if (hadFocus) box.focus({ preventScroll: true }); // a change that had it is not there any more
    drawFoot();
  }

  function drawFoot() {
    const left = shown.next === null ? 0 : shown.total - shown.next;
    const label = `Show next rows, ${number(left)} are left`;
    replace(foot, left > 0 ? h("div.mk-bar", frame.button(label, label, showNext)) : null);
    onDrawn();
  }

  function expand(line, row, count, fromEnd) {
    const view = shown;
    const start = row[2] + (fromEnd ? row[3] - count : 0);
    return frame.attempt("Show lines", async () => {
      const { rows: texts } = await frame.call("lines", { new: view.new, start, count });
      const at = view.rows.indexOf(row);
      if (at < 0) return;
      const now = unfolded(row, texts, fromEnd);
      view.rows.splice(at, 1, ...now);
      if (line.isConnected) putInPlace(line, elements(now));
    });
  }

  /** The focus stays near: on what is still folded, else on the box. */
  function putInPlace(line, lines) {
    line.replaceWith(...lines);
    const rest = lines.map((each) => each.querySelector("button")).find(Boolean);
    (rest ?? box).focus();
    onDrawn();
  }

  /** @returns {Promise<boolean>} whether there were more rows */
  async function showNext() {
    const view = shown;
    if (view.next === null) return false;
    const page = await frame.attempt("Show next rows", () => frame.call("diff", { ...ask(view), start: view.next }));
    if (!page || view !== shown || view.next !== page.start) return false;
    const inPlace = endsInPlace(view.rows);
    view.rows.push(...page.rows);
    view.next = page.next;
    box.querySelector("tbody").append(...elements(page.rows, inPlace));
    if (hasFocus(foot)) box.focus();
    drawFoot();
    frame.say(counted(page.rows.length, "more row"));
    return true;
  }

  return { draw, showNext };
}
