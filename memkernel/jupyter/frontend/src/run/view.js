import { h } from "../dom.js";

/** @param {object} frame from openFrame */
export function agentRun(frame) {
  frame.body.append(h("div", { class: "mk-bar" }, h("span", { class: "mk-title" }, frame.get("kind"))));
  frame.ready("run");
}
