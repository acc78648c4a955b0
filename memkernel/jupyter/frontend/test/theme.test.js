import { afterEach, expect, test, vi } from "vitest";
import { isDark, luminance, watchTheme } from "../src/theme.js";

const { body, documentElement: root } = document;

afterEach(() => {
  for (const name of ["data-jp-theme-light", "data-vscode-theme-kind", "class", "style"]) body.removeAttribute(name);
  for (const name of ["theme", "class"]) root.removeAttribute(name);
  body.replaceChildren();
  vi.restoreAllMocks();
});

function inBody() {
  const element = document.createElement("div");
  body.append(element);
  return element;
}

function systemIs(dark) {
  vi.spyOn(window, "matchMedia").mockReturnValue({ matches: dark, addEventListener() {}, removeEventListener() {} });
}

test.each([
  ["JupyterLab, dark", () => (body.dataset.jpThemeLight = "false"), true],
  ["JupyterLab, light", () => (body.dataset.jpThemeLight = "true"), false],
  ["VS Code, dark", () => (body.dataset.vscodeThemeKind = "vscode-dark"), true],
  ["VS Code, high contrast", () => (body.dataset.vscodeThemeKind = "vscode-high-contrast"), true],
  ["VS Code, light high contrast", () => (body.dataset.vscodeThemeKind = "vscode-high-contrast-light"), false],
  ["Colab, dark", () => root.setAttribute("theme", "dark"), true],
  ["marimo, dark", () => root.classList.add("dark"), true],
  ["a page painted dark", () => (body.style.backgroundColor = "rgb(20, 20, 20)"), true],
  ["a page painted light", () => (body.style.backgroundColor = "rgb(250, 250, 250)"), false],
])("%s, whatever the system says", (_, setHost, dark) => {
  systemIs(!dark);
  setHost();
  expect(isDark(inBody())).toBe(dark);
});

test("without any host's word the system decides", () => {
  systemIs(true);
  expect(isDark(inBody())).toBe(true);
});

test("what is painted behind is found through shadow trees", () => {
  systemIs(true);
  const host = inBody();
  host.style.backgroundColor = "rgb(255, 255, 255)";
  const inner = document.createElement("div");
  host.attachShadow({ mode: "open" }).append(inner);
  expect(isDark(inner)).toBe(false);
});

test("luminance of a colour; what is transparent has none", () => {
  expect(luminance("rgb(255, 255, 255)")).toBeCloseTo(1);
  expect(luminance("rgba(0, 0, 0, 0.9)")).toBe(0);
  expect([luminance("rgba(0, 0, 0, 0)"), luminance("transparent"), luminance(undefined)]).toEqual([null, null, null]);
});

test("a change of the host's theme is told once, until one stops", async () => {
  body.dataset.jpThemeLight = "true";
  const told = vi.fn();
  const stop = watchTheme(inBody(), told);
  const now = () => new Promise((resolve) => setTimeout(resolve));
  body.dataset.jpThemeLight = "false";
  await now();
  body.classList.add("unrelated");
  await now();
  stop();
  body.dataset.jpThemeLight = "true";
  await now();
  expect(told.mock.calls).toEqual([[false], [true]]);
});
