/** A sandbox: its limits, its mounts, its cells and what became of their files. */
export function sandboxPanel(frame) {
  frame.ready("0");
}
