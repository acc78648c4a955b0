import { expect, test } from "vitest";
import { h } from "../src/dom.js";
import { markdown } from "../src/browser/markdown.js";

/** What is shown, as tags and text. */
function shown(marked) {
  return h("div", {}, ...markdown(marked).nodes).innerHTML;
}

test("headings begin at the fourth level, for the notebook has its own", () => {
  expect(shown("# Units\n\n### Deep")).toBe('<h4 class="mk-h1">Units</h4><h6 class="mk-h3">Deep</h6>');
});

test("emphasis, code and what is struck out", () => {
  expect(shown("a **b *c*** `d*e*` ~~f~~ g_h_i")).toBe(
    "<p>a <strong>b <em>c</em></strong> <code>d*e*</code> <s>f</s> g_h_i</p>",
  );
});

test("lists, nested, numbered and with tasks", () => {
  expect(shown("- a\n  - b\n- [x] c")).toBe('<ul><li>a<ul><li>b</li></ul></li><li class="mk-task">☑ c</li></ul>');
  expect(shown("3. a\n4. b")).toBe('<ol start="3"><li>a</li><li>b</li></ol>');
});

test("quotes, rules, fenced code and tables", () => {
  expect(shown("> a\n> b")).toBe("<blockquote><p>a\nb</p></blockquote>");
  expect(shown("a\n\n---\n")).toBe("<p>a</p><hr>");
  expect(shown("```py\n# no heading\n```\nafter")).toBe('<div class="mk-fenced"># no heading</div><p>after</p>');
  expect(shown("|a|b|\n|-|-|\n|1|2|")).toBe(
    "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>",
  );
});

test("what looks like HTML stays text", () => {
  const page = h("div", {}, ...markdown("<script>alert(1)</script>\n\n<img src=x onerror=alert(1)>").nodes);
  expect(page.querySelectorAll("script, img").length).toBe(0);
  expect(page.textContent).toContain("<script>alert(1)</script>");
});

test("links and images are words and their target, and nothing to click on", () => {
  const page = h("div", {}, ...markdown("[read me](javascript:alert(1)) ![x](https://evil.example/a.png)").nodes);
  expect(page.querySelectorAll("a, img, [href], [src]").length).toBe(0);
  expect(page.textContent).toContain("read me (javascript:alert(1)");
  expect(page.textContent).toContain("x (https://evil.example/a.png)");
});

test("a mark of Python's stays a mark wherever it stands", () => {
  const page = h("div", {}, ...markdown(["# a", ["⟨U+202E⟩", "U+202E RIGHT-TO-LEFT OVERRIDE"], "b"]).nodes);
  expect(page.querySelector("h4 > b.mk-mark").title).toBe("U+202E RIGHT-TO-LEFT OVERRIDE");
  expect(page.textContent).toBe("a⟨U+202E⟩b");
});

test("a carriage return at a line's end is how the line ends, anywhere else a mark", () => {
  const cr = ["⟨CR⟩", "U+000D CONTROL CHARACTER"];
  const page = h("div", {}, ...markdown(["# a", cr, "\nb", cr, "c"]).nodes);
  expect(page.querySelector("h4").textContent).toBe("a");
  expect(page.querySelector("p").textContent).toBe("b⟨CR⟩c");
});

test.each([
  ["stars", "a" + "*".repeat(100_000)],
  ["openers that never close", "*a ".repeat(30_000)],
  ["backquotes", "a" + "`".repeat(100_000)],
  ["backquotes of many lengths", Array.from({ length: 400 }, (_, n) => "`".repeat(n % 17) + "a").join(" ")],
  ["brackets", "[".repeat(100_000)],
  ["bracket pairs", "[](".repeat(30_000)],
  ["quotes in quotes", ">".repeat(100_000)],
  ["stars and underscores", "*_".repeat(50_000)],
  ["closers after white space", "*a * ".repeat(20_000)],
  ["deep lists", Array.from({ length: 500 }, (_, n) => `${" ".repeat(n)}- a`).join("\n")],
  ["a heading's sign and blanks", `# ${" ".repeat(100_000)}a`],
  ["a rule that is none", `${"- ".repeat(50_000)}a`],
  ["table delimiters", `a|b\n${"-|".repeat(50_000)}x`],
])("the text of %s is there, and soon", (_, source) => {
  const page = h("div", {}, ...markdown(source).nodes);
  expect(page.textContent.length).toBeGreaterThan(0);
});

test("a text of very many blocks is cut, and says so", () => {
  const found = markdown("- a\n".repeat(25_000));
  expect(found.whole).toBe(false);
  expect(found.nodes[0].children.length).toBeLessThan(2_000);
  expect(markdown("a\n".repeat(50_000)).whole).toBe(true);
});
