import { h } from "../dom.js";
import { inline } from "./inline.js";
import { sealed } from "./marks.js";

const DEEPEST = 6;
const MOST_BLOCKS = 1_500;

const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^(\s{0,11})([-*+]|\d{1,9}[.)])(?:\s+(.*))?$/;
const TASK = /^\[([ xX])\]\s+/;
const COLUMNS = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

/**
 * Markdown as nodes: headings, lists, quotes, code, tables, rules, emphasis. Nothing of it becomes HTML, a link or an
 * image, and whatever is not understood stays text.
 *
 * @param {string|Array} marked a stored text as Python marked it
 * @returns {{nodes: Array<Node>, whole: boolean}} `whole` is false where the rest was left out
 */
export function markdown(marked) {
  const { source, open } = sealed(marked);
  const page = { open, left: MOST_BLOCKS };
  const nodes = blocks(source.split("\n"), page, 0);
  return { nodes, whole: page.left > 0 };
}

function blocks(lines, page, depth) {
  const nodes = [];
  let at = depth === 0 ? frontMatter(lines, nodes, page) : 0;
  while (at < lines.length && page.left > 0) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    page.left -= 1;
    const [node, next] = block(lines, at, page, depth);
    nodes.push(node);
    at = next;
  }
  return nodes;
}

/** The block that begins at a line, and the line after it. */
function block(lines, at, page, depth) {
  const line = lines[at];
  if (FENCE.test(line)) return fenced(lines, at, page);
  if (HEADING.test(line)) return [heading(line, page), at + 1];
  if (RULE.test(line)) return [h("hr"), at + 1];
  if (QUOTE.test(line) && depth < DEEPEST) return quote(lines, at, page, depth);
  if (ITEM.test(line) && depth < DEEPEST) return list(lines, at, page, depth);
  if (line.includes("|") && COLUMNS.test(lines[at + 1] ?? "") && lines[at + 1].includes("-")) return table(lines, at, page);
  return paragraph(lines, at, page);
}

function frontMatter(lines, nodes, page) {
  const end = lines[0] === "---" ? lines.indexOf("---", 1) : -1;
  if (end < 2) return 0;
  nodes.push(codeBlock(lines.slice(1, end).join("\n"), page));
  return end + 1;
}

function fenced(lines, at, page) {
  const [, fence] = FENCE.exec(lines[at]);
  const ends = (line) => line.trim().startsWith(fence) && !line.trim().slice(fence.length).replaceAll(fence[0], "");
  let end = at + 1;
  while (end < lines.length && !ends(lines[end])) end += 1;
  return [codeBlock(lines.slice(at + 1, end).join("\n"), page), end + 1];
}

function codeBlock(text, page) {
  return h("div", { class: "mk-fenced" }, ...page.open(text));
}

// The widget stands inside a notebook, which has headings of its own: these begin at the fourth level.
function heading(line, page) {
  const [, signs, words = ""] = HEADING.exec(line);
  const level = String(Math.min(6, signs.length + 3));
  return h(`h${level}`, { class: `mk-h${signs.length}` }, ...inline(words, page.open));
}

function quote(lines, at, page, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const inside = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return [h("blockquote", {}, ...blocks(inside, page, depth + 1)), end];
}

function list(lines, at, page, depth) {
  const [, , sign] = ITEM.exec(lines[at]);
  const numbered = /\d/.test(sign);
  const items = [];
  let next = at;
  while (next < lines.length && page.left > 0 && goesOn(lines[next], numbered)) {
    page.left -= 1;
    const [inside, end] = itemLines(lines, next);
    items.push(item(inside, page, depth));
    next = end;
  }
  const start = numbered && parseInt(sign, 10) !== 1 ? { start: parseInt(sign, 10) } : {};
  return [h(numbered ? "ol" : "ul", start, ...items), next];
}

function goesOn(line, numbered) {
  const found = ITEM.exec(line);
  return found && !RULE.test(line) && /\d/.test(found[2]) === numbered;
}

/** The lines of an item without its indent: those that are deeper, and empty ones before such. */
function itemLines(lines, at) {
  const [, indent, , first = ""] = ITEM.exec(lines[at]);
  const inside = [first];
  let next = at + 1;
  for (; next < lines.length; next += 1) {
    const line = lines[next];
    const deep = line.length - line.trimStart().length > indent.length;
    const follows = deep || (!line.trim() && deeper(lines[next + 1], indent.length)) || goesOnLazily(line, inside);
    if (!follows) break;
    inside.push(line.slice(0, indent.length + 2).trimStart() + line.slice(indent.length + 2));
  }
  while (next < lines.length && !lines[next].trim() && ITEM.test(lines[next + 1] ?? "")) next += 1;
  return [inside, next];
}

function deeper(line, indent) {
  return Boolean(line?.trim()) && line.length - line.trimStart().length > indent;
}

function goesOnLazily(line, inside) {
  return Boolean(line.trim()) && Boolean(inside.at(-1).trim()) && !startsBlock(line);
}

function item(inside, page, depth) {
  const task = TASK.exec(inside[0]);
  const rest = task ? [inside[0].replace(TASK, ""), ...inside.slice(1)] : inside;
  const content = blocks(rest, page, depth + 1);
  const [first, ...others] = content;
  const tight = first?.tagName === "P" ? [...first.childNodes, ...others] : content;
  return h("li", { class: task ? "mk-task" : null }, ...(task ? [task[1] === " " ? "☐ " : "☑ "] : []), ...tight);
}

function table(lines, at, page) {
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|") && lines[end].trim()) end += 1;
  page.left -= end - at - 2;
  const row = (line, tag) => h("tr", {}, ...cells(line).map((cell) => h(tag, {}, ...inline(cell, page.open))));
  const body = lines.slice(at + 2, end).slice(0, MOST_BLOCKS).map((line) => row(line, "td"));
  return [h("table", {}, h("thead", {}, row(lines[at], "th")), h("tbody", {}, ...body)), end];
}

function cells(line) {
  const inside = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return inside.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function paragraph(lines, at, page) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !startsBlock(lines[end])) end += 1;
  return [h("p", {}, ...inline(lines.slice(at, end).join("\n").trim(), page.open)), end];
}

function startsBlock(line) {
  return [FENCE, HEADING, RULE, QUOTE, ITEM].some((pattern) => pattern.test(line));
}
