// Who says whether the page is dark: JupyterLab, VS Code, Colab, marimo, else what is painted behind, else the system.

/** @returns {boolean} whether the host shows this element on a dark page */
export function isDark(element) {
  const { body, documentElement: root } = document;
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
  if (body.dataset.vscodeThemeKind) return /dark|high-contrast$/.test(body.dataset.vscodeThemeKind);
  if (root.getAttribute("theme")) return root.getAttribute("theme") === "dark";
  if (root.classList.contains("dark") || body.classList.contains("dark")) return true;
  return darkBehind(element) ?? matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The first painted background around the element, also outside of its shadow tree. */
function darkBehind(element) {
  for (let each = element; each; each = each.parentElement ?? each.getRootNode().host) {
    const light = luminance(getComputedStyle(each).backgroundColor);
    if (light !== null) return light < 0.5;
  }
  return null;
}

/** 0 (black) to 1 (white); null for what is transparent or no colour. */
export function luminance(colour) {
  const found = /rgba?\(([\d.]+)[, ]+([\d.]+)[, ]+([\d.]+)(?:[,/ ]+([\d.]+))?/.exec(colour ?? "");
  if (!found || (found[4] !== undefined && Number(found[4]) < 0.1)) return null;
  return (0.299 * found[1] + 0.587 * found[2] + 0.114 * found[3]) / 255;
}

/**
 * Tell whether it is dark, now and whenever that changes.
 *
 * @param {(dark: boolean) => void} onChange
 * @returns {() => void} stops it
 */
export function watchTheme(element, onChange) {
  let last = isDark(element);
  onChange(last);
  const look = () => {
    if (isDark(element) === last) return;
    last = !last;
    onChange(last);
  };
  const observer = new MutationObserver(look);
  for (const host of [document.body, document.documentElement]) observer.observe(host, { attributes: true });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", look);
  return () => {
    observer.disconnect();
    system.removeEventListener("change", look);
  };
}
