import base from "./base.css";
import palette from "./palette.css";
import { openFrame } from "./frame.js";
import { VIEWS, STYLES } from "./views.js";

const MARK = "data-mk-style";

/** A document, or a shadow tree, gets the style once. */
function ensureStyle(el) {
  const tree = el.getRootNode();
  const host = tree instanceof ShadowRoot ? tree : document.head;
  if (host.querySelector(`style[${MARK}]`)) return;
  const style = document.createElement("style");
  style.setAttribute(MARK, "");
  style.textContent = [palette, base, ...STYLES].join("\n");
  host.append(style);
}

/** Hosts other than JupyterLab and Notebook wrap outputs differently: there the static copy is hidden by its name. */
function hideStaticCopy(model) {
  const style = document.createElement("style");
  style.textContent = `[data-mk="${CSS.escape(model.model_id ?? "")}"]{display:none!important}`;
  document.head.append(style);
  return () => style.remove();
}

function render({ model, el }) {
  ensureStyle(el);
  const frame = openFrame({ model, el });
  frame.onClose(hideStaticCopy(model));
  VIEWS[model.get("kind")](frame);
  return () => frame.close();
}

export default { render };
