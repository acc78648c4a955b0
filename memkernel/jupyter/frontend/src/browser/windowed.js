import { aria, h, replace } from "../dom.js";

const MARGIN = 4; // rows beyond each edge, so that a step by key never shows a gap
const FALLBACK_PX = 360; // before the box is laid out

let lists = 0;

/**
 * A list of which only the rows on screen are in the page.
 *
 * @param {number} rowPx the height of every row
 * @param {string} role of the box: tree or listbox
 * @param {string} label
 * @param {object} on
 * @param {(item: *, index: number) => HTMLElement} on.draw one row, with its role and what aria says of the others
 * @param {(item: *) => void} on.look a key made another row the active one
 * @param {(item: *, how: "key"|"click") => void} on.open Enter, or a click
 * @param {(event: KeyboardEvent, item: *, index: number) => *} on.key another key; true where it was used
 * @param {(drawn: Array, end: number) => void} [on.paint] these rows are in the page now, which end before `end`
 */
export function windowed(rowPx, role, label, on) {
  const id = `mk-window-${(lists += 1)}-`;
  const rows = h("div", { role: "none", onclick });
  const facts = { role, "aria-label": label, tabindex: "0", onscroll: paint, onkeydown };
  const box = h("div.mk-window", facts, rows);
  let items = [];
  let active = -1;
  let first = 0;

  const height = () => box.clientHeight || FALLBACK_PX;

  function paint() {
    first = Math.max(0, Math.floor(box.scrollTop / rowPx) - MARGIN);
    const drawn = items.slice(first, Math.ceil((box.scrollTop + height()) / rowPx) + MARGIN);
    const end = first + drawn.length;
    rows.style.height = `${items.length * rowPx}px`;
    replace(rows, drawn.map((item, offset) => placed(on.draw(item, first + offset), first + offset)));
    aria(box, "activedescendant", active >= first && active < end ? id + active : "");
    on.paint?.(drawn, end);
  }

  function placed(row, index) {
    row.id = id + index;
    row.style.top = `${index * rowPx}px`;
    row.classList.toggle("mk-active", index === active);
    return row;
  }

  function move(index) {
    active = Math.max(0, Math.min(items.length - 1, index));
    const top = active * rowPx;
    box.scrollTop = Math.max(top + rowPx - height(), Math.min(top, box.scrollTop));
    paint();
  }

  function onclick({ target }) {
    const offset = [...rows.children].findIndex((row) => row.contains(target));
    if (offset < 0) return;
    move(first + offset);
    on.open(items[active], "click");
  }

  function onkeydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !items.length) return;
    const [all, page] = [items.length, Math.floor(height() / rowPx) - 1];
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -all, End: all }[event.key];
    if (by) {
      move(active + by);
      on.look(items[active]);
    } else if (event.key === "Enter" && active >= 0) on.open(items[active], "key");
    else if (!on.key(event, items[active], active)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  const resized = new ResizeObserver(() => paint());
  resized.observe(box);
  return {
    element: box,
    paint,
    move,
    /** Other items; the one that `isActive` finds is the active one. */
    set(next, isActive) {
      items = next;
      active = items.findIndex(isActive);
      paint();
    },
    items: () => items,
    active: () => items[active],
    dispose: () => resized.disconnect(),
  };
}
