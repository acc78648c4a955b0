import { question } from "../diff/dialogs.js";
import { h } from "../dom.js";

/**
 * What a person can do with the whole sandbox, or with one of its folders.
 *
 * @param {{asking: HTMLElement, tell: (words: string) => void}} how where questions stand, and how an outcome is told
 */
export function actionsOf(frame, { asking, tell }) {
  /** One request: the sentence of its answer is told; a failure is a line with Retry. */
  function ask(what, method, params = {}) {
    return frame.attempt(what, async () => {
      tell(`${what} …`);
      try {
        const { said } = await frame.call(method, params);
        tell(said ? `${what}: ${said}` : "");
      } catch (error) {
        tell("");
        throw error;
      }
    });
  }

  function confirmed(label, sentence, action) {
    const asked = question(frame, asking, { label, danger: true });
    const go = () => {
      asked.close();
      return action();
    };
    asked.fill(h("span", {}, sentence), frame.button(label, label, go));
  }

  function stop() {
    const sentence = "Stop the sandbox? Everything is saved first; what its variables hold is gone then. ";
    confirmed("Stop the sandbox", sentence, () => ask("Stop", "stop"));
  }

  function reset({ slug, folder, store }) {
    const label = `Reset ${slug}`;
    const what = ["Make ", h("code", {}, folder), " equal to its store? What is not saved there is put aside. "];
    const go = () => confirmed(label, what, () => ask(label, "reset", { store }));
    return frame.button("Reset…", `Make ${folder} equal to its store`, go, { "aria-label": label });
  }

  function deleteHeldBack() {
    const go = () => ask("Delete", "delete_held_back");
    return frame.button("Delete them after all", "Carry out the deletions that were held back", go);
  }

  function buttons(status) {
    const isOver = status === "stopped";
    const saves = "Save what was changed here, bring what was changed in the stores";
    return [
      ["Sync now", saves, () => ask("Sync", "sync"), !may(status)],
      ["Interrupt", "Interrupt the cell that runs", () => ask("Interrupt", "interrupt"), status !== "busy"],
      ["Stop", "Save all and end the sandbox", stop, isOver],
      ["⟳", "Look anew at the stores", () => ask("Look", "refresh"), isOver],
    ].map(([label, title, action, disabled]) => frame.button(label, title, action, { disabled }));
  }

  return { may, buttons, reset, deleteHeldBack };
}

/** Whether the sandbox is there and free. */
function may(status) {
  return status === "running" || status === "dead";
}
