import { h } from "../dom.js";
import { counted } from "../format.js";
import { entryView } from "./entries.js";

const SLACK_PX = 24;
const SPOKEN = 400;

/**
 * What was said and done, in order of the entries' keys (widgets/run_log.py says what entries and changes are).
 *
 * @returns {{element: HTMLElement, take: (changes: object[]) => void, put: (state: object) => void,
 *   misses: () => boolean, end: (words: string) => void, count: () => number, toggleCalls: () => void,
 *   toNewest: () => void}}
 */
export function transcript(frame) {
  const views = new Map();
  const list = h("div", { class: "mk-run-entries" });
  const log = h("div", { class: "mk-run-log", role: "log", "aria-live": "off", "aria-label": "What happens", tabindex: "0" }, list);
  const earlier = frame.button("Show earlier", "Show what came before", showEarlier, { hidden: true });
  const newest = frame.button("↓ Newest", "Go to the newest", toNewest, { class: "mk-button mk-run-newest", hidden: true });
  const element = h("div", { class: "mk-run-body" }, log, newest);
  let seen = 0;
  let missed = false;
  let sticks = true;
  let top = 0; // where it last followed to
  let spoken = 0; // the key of the last entry that was said aloud
  list.before(earlier);

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
      apply(change);
    }
    follow();
  }

  function apply(change) {
    if (change.drop !== undefined) remove((key) => key >= change.drop);
    else if (change.add === undefined) putEntry(change);
    else if (views.has(change.k)) views.get(change.k).add(change);
    else missed = true;
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
    const view = views.get(entry.k);
    if (view) return view.update(entry);
    const added = entryView(frame, entry);
    const after = [...views.keys()].filter((key) => key > entry.k).sort((one, other) => one - other)[0];
    views.set(entry.k, added);
    list.insertBefore(added.element, after === undefined ? null : views.get(after).element);
    if (entry.k > spoken) speak(entry.k);
    return undefined;
  }

  function remove(gone) {
    for (const [key, view] of [...views]) {
      if (!gone(key)) continue;
      view.dispose();
      views.delete(key);
    }
  }

  /** A screen reader is told each entry once it is whole: when the next begins, or the run ends. */
  function speak(key) {
    const before = views.get(spoken);
    spoken = key;
    if (before && seen) frame.say(before.spoken().slice(0, SPOKEN));
  }

  function offerEarlier(count) {
    earlier.hidden = !count;
    earlier.textContent = `Show earlier: ${counted(count, "entry", "entries")}`;
  }

  async function showEarlier() {
    const before = Math.min(...views.keys());
    const state = await frame.attempt("Show earlier", () => frame.call("earlier", { before }));
    if (!state) return;
    const height = log.scrollHeight;
    for (const entry of state.entries) putEntry(entry);
    offerEarlier(state.left_out);
    log.scrollTop += log.scrollHeight - height;
  }

  function follow() {
    if (!sticks) return;
    log.scrollTop = log.scrollHeight;
    top = log.scrollTop;
  }

  function toNewest() {
    sticks = true;
    newest.hidden = true;
    follow();
  }

  function toggleCalls() {
    const calls = [...list.querySelectorAll(".mk-run-call > details")];
    const open = !calls.every((call) => call.open);
    for (const call of calls) call.open = open;
  }

  function end(words) {
    if (!words) return;
    const last = views.get(Math.max(...views.keys()));
    frame.say([last?.spoken().slice(0, SPOKEN), words].filter(Boolean).join(". "));
  }

  return { element, take, put, misses: () => missed, end, count: () => views.size, toggleCalls, toNewest };
}
