import { h } from "../dom.js";

const MARGIN = 4; // rows beyond each edge, so that a step by key never shows a gap
const FALLBACK_PX = 360; // before the box is laid out

let lists = 0;

/**
 * A list of which only the rows on screen are in the page; `aria-setsize` and `aria-posinset` tell of the others.
 *
 * @param {object} options
 * @param {string} options.role of the box: tree or listbox
 * @param {string} options.label
 * @param {number} options.rowPx the height of every row
 * @param {(item: *, index: number) => HTMLElement} options.draw one row, with its role and its aria facts
 * @param {(item: *, index: number, how: "key"|"click") => void} options.onMove another row became the active one
 * @param {(item: *, index: number) => void} options.onOpen Enter, or a click
 * @param {(event: KeyboardEvent, item: *, index: number) => boolean} options.onKey a further key; whether it was used
 * @param {(last: number) => void} [options.onReach] rows up to this one are seen
 */
export function windowed({ role, label, rowPx, draw, onMove, onOpen, onKey = () => false, onReach = () => {} }) {
  const id = `mk-list-${(lists += 1)}`;
  const rows = h("div", { class: "mk-rows", role: "none" });
  const box = h("div", { class: "mk-list", role, "aria-label": label, tabindex: "0" }, rows);
  let items = [];
  let active = -1;
  let drawn = [0, 0];

  function paint() {
    const height = box.clientHeight || FALLBACK_PX;
    const first = Math.max(0, Math.floor(box.scrollTop / rowPx) - MARGIN);
    const end = Math.min(items.length, Math.ceil((box.scrollTop + height) / rowPx) + MARGIN);
    drawn = [first, end];
    rows.style.height = `${items.length * rowPx}px`;
    rows.replaceChildren(...items.slice(first, end).map((item, offset) => placed(item, first + offset)));
    const there = active >= first && active < end;
    if (there) box.setAttribute("aria-activedescendant", `${id}-${active}`);
    else box.removeAttribute("aria-activedescendant");
    if (end > 0) onReach(end - 1);
  }

  function placed(item, index) {
    const row = draw(item, index);
    row.id = `${id}-${index}`;
    row.style.top = `${index * rowPx}px`;
    row.style.height = `${rowPx}px`;
    row.classList.toggle("mk-active", index === active);
    row.addEventListener("click", () => {
      move(index, "click");
      onOpen(item, index, "click");
    });
    return row;
  }

  function show(index) {
    const top = index * rowPx;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + rowPx > box.scrollTop + (box.clientHeight || FALLBACK_PX)) {
      box.scrollTop = top + rowPx - (box.clientHeight || FALLBACK_PX);
    }
  }

  function move(index, how) {
    if (!items.length) return;
    active = Math.max(0, Math.min(items.length - 1, index));
    show(active);
    paint();
    if (how) onMove(items[active], active, how);
  }

  function step(key) {
    const page = Math.max(1, Math.floor((box.clientHeight || FALLBACK_PX) / rowPx) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -items.length, End: items.length };
    return steps[key];
  }

  function onKeydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const item = items[active];
    const by = step(event.key);
    if (onKey(event, item, active)) stop(event);
    else if (by !== undefined) {
      stop(event);
      move(active < 0 ? 0 : active + by, "key");
    } else if (event.key === "Enter" && item !== undefined) {
      stop(event);
      onOpen(item, active, "key");
    }
  }

  box.addEventListener("scroll", () => paint(), { passive: true });
  box.addEventListener("keydown", onKeydown);
  const resized = new ResizeObserver(() => paint());
  resized.observe(box);
  return {
    element: box,
    /** Other items; the active one is the one at `index`, or none. */
    set(next, index = -1) {
      items = next;
      active = Math.min(index, items.length - 1);
      paint();
    },
    move,
    paint,
    reveal: (index) => index >= 0 && (show(index), paint()),
    drawn: () => items.slice(...drawn),
    get items() {
      return items;
    },
    get active() {
      return active;
    },
    dispose: () => resized.disconnect(),
  };
}

function stop(event) {
  event.preventDefault();
  event.stopPropagation();
}
