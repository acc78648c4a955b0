import { h } from "../dom.js";
import { entryView } from "./entries.js";

const SLACK_PX = 24;
const SPOKEN = 400;

/**
 * What was said and done, in order of the entries' keys (widgets/run_log.py says what entries and changes are).
 *
 * @returns {{element: HTMLElement, take: (changes: object[]) => void, put: (state: object) => void,
 *   misses: () => boolean, end: (words: string) => void, count: () => number, toggleCalls: () => void,
 *   toNewest: () => void, toWaiting: () => void}}
 */
export function transcript(frame) {
  const views = new Map();
  const list = h("div");
  const earlier = frame.button("Show earlier", "Show what came before", showEarlier, { hidden: true });
  const role = { role: "log", "aria-live": "off", "aria-label": "What happens", tabindex: "0" };
  const log = h("div.mk-run-log", role, earlier, list);
  const newest = frame.button("↓ Newest", "Go to the newest", toNewest, {
    class: "mk-button mk-run-newest",
    hidden: true,
  });
  const element = h("div", log, newest);
  let seen = 0;
  let missed = false;
  let sticks = true;
  let top = 0; // where it last followed to
  let spoken = 0; // the key of the last entry that was said aloud

  log.addEventListener("scroll", look);

  function look() {
    sticks = log.scrollTop + log.clientHeight >= log.scrollHeight - SLACK_PX;
    newest.hidden = sticks;
  }

  /** Before something is added: the event of a scroll upwards may not have come yet. */
  function lookAgain() {
    if (log.scrollTop < top - SLACK_PX) look();
  }

  /** Changes as they come; those that are known already do nothing. */
  function take(changes) {
    lookAgain();
    for (const change of changes) {
      if (change.n <= seen) continue;
      missed ||= change.n > seen + 1;
      seen = change.n;
      if (change.drop) remove((key) => key >= change.drop);
      else if (!("add" in change)) putEntry(change);
      else if (views.has(change.k)) views.get(change.k).add(change);
      else missed = true;
    }
    follow();
  }

  /** All that there is, or its last part. */
  function put({ entries, left_out: before, n }) {
    if (n < seen) return;
    lookAgain();
    const keys = new Set(entries.map((entry) => entry.k));
    const first = Math.min(...keys);
    remove((key) => key >= first && !keys.has(key));
    for (const entry of entries) if (missed || views.get(entry.k)?.n !== entry.n) putEntry(entry);
    seen = n;
    missed = false;
    offerEarlier(before);
    follow();
  }

  function putEntry(entry) {
    if (views.has(entry.k)) return views.get(entry.k).update(entry);
    const view = entryView(frame, entry);
    const next = Math.min(...[...views.keys()].filter((key) => key > entry.k));
    list.insertBefore(view.element, views.get(next)?.element ?? null);
    views.set(entry.k, view);
    if (entry.k > spoken) speak(entry.k);
    return undefined;
  }

  function remove(isGone) {
    for (const key of [...views.keys()].filter(isGone)) {
      views.get(key).element.remove();
      views.delete(key);
    }
  }

  /** A screen reader is told each entry once it is whole: when the next begins, or the run ends. */
  function speak(key, more = "") {
    const words = views.get(spoken)?.spoken().slice(0, SPOKEN);
    spoken = key;
    if (seen) frame.say([words, more].filter(Boolean).join(". "));
  }

  function offerEarlier(count) {
    earlier.hidden = !count;
    earlier.textContent = `Show ${count} earlier`;
  }

  async function showEarlier() {
    const before = Math.min(...views.keys());
    const state = await frame.attempt("Show earlier", () => frame.call("earlier", { before }));
    if (!state) return;
    const height = log.scrollHeight;
    state.entries.forEach(putEntry);
    offerEarlier(state.left_out);
    log.scrollTop += log.scrollHeight - height;
  }

  function follow() {
    if (!sticks) return;
    log.scrollTop = log.scrollHeight;
    top = log.scrollTop;
  }

  function toNewest() {
    sticks = newest.hidden = true;
    follow();
  }

  function toggleCalls() {
    const calls = [...list.querySelectorAll(".mk-run-tool > details")];
    const open = !calls.every((call) => call.open);
    for (const call of calls) call.open = open;
  }

  const toWaiting = () => list.querySelector("[role=group]:not([hidden]) button")?.focus();
  const end = (words) => speak(spoken, words);
  return { element, take, put, misses: () => missed, end, count: () => views.size, toggleCalls, toNewest, toWaiting };
}
