import { h } from "../dom.js";

// What stands inside a line. Longer signs first; each knows the element that it makes.
const PAIRS = [
  ["**", "strong"],
  ["__", "strong"],
  ["~~", "s"],
  ["*", "em"],
  ["_", "em"],
];
const SPECIAL = /[\\`*_~[!]/;
const ESCAPED = /[!-/:-@[-`{-~]/;
const DEEPEST = 6;

/**
 * A line of Markdown as nodes: code, strong, emphasis, struck out; links and images as their words and, faint, where
 * they point to, for nothing that is stored becomes a link. Each sign is looked for once: the time is linear.
 *
 * @param {string} source
 * @param {(part: string) => Array<Node|string>} open makes nodes of plain text
 */
export function inline(source, open, depth = 0) {
  if (depth > DEEPEST || !SPECIAL.test(source)) return open(source);
  const nodes = [];
  const missing = new Set(); // signs that do not close any more in the rest of the source
  let plain = "";
  let at = 0;
  const flush = () => {
    nodes.push(...open(plain));
    plain = "";
  };
  while (at < source.length) {
    const found = SPECIAL.test(source[at]) && token(source, at, open, depth, missing);
    if (!found) plain += source[at++];
    else if (typeof found.node === "string") [plain, at] = [plain + found.node, found.end];
    else {
      flush();
      nodes.push(...[found.node].flat());
      at = found.end;
    }
  }
  flush();
  return nodes;
}

function token(source, at, open, depth, missing) {
  const sign = source[at];
  if (sign === "\\") return escape(source, at);
  if (sign === "`") return code(source, at, open, missing);
  if (sign === "[" || sign === "!") return pointer(source, at, open, depth, missing);
  return pair(source, at, open, depth, missing);
}

function escape(source, at) {
  const next = source[at + 1];
  return next && ESCAPED.test(next) ? { node: next, end: at + 2 } : null;
}

function code(source, at, open, missing) {
  const fence = /^`+/.exec(source.slice(at, at + 16))[0];
  const close = after(source, fence, at + fence.length, missing);
  if (close < 0) return { node: fence, end: at + fence.length };
  const text = source.slice(at + fence.length, close);
  const trimmed = /^ .*[^ ].* $/s.test(text) ? text.slice(1, -1) : text;
  return { node: h("code", {}, ...open(trimmed)), end: close + fence.length };
}

function pointer(source, at, open, depth, missing) {
  const start = source[at] === "!" ? at + 1 : at;
  if (source[start] !== "[") return null;
  const middle = after(source, "](", start + 1, missing);
  const close = middle < 0 ? -1 : after(source, ")", middle + 2, missing);
  if (close < 0 || source.slice(start, middle).includes("\n\n")) return null;
  const words = inline(source.slice(start + 1, middle), open, depth + 1);
  const target = h("span", { class: "mk-target" }, " (", ...open(source.slice(middle + 2, close)), ")");
  return { node: [h("span", { class: "mk-pointer" }, ...words, target)], end: close + 1 };
}

function pair(source, at, open, depth, missing) {
  const run = runOf(source, at);
  if (run > 3) return { node: source.slice(at, at + run), end: at + run };
  for (const [sign, tag] of PAIRS) {
    if (!source.startsWith(sign, at) || /\s|^$/.test(source[at + sign.length] ?? "")) continue;
    if (sign[0] === "_" && /\w/.test(source[at - 1] ?? "")) continue;
    const close = closing(source, sign, at + sign.length + 1, missing);
    if (close < 0) continue;
    const inner = inline(source.slice(at + sign.length, close), open, depth + 1);
    return { node: h(tag, {}, ...inner), end: close + sign.length };
  }
  return null;
}

/** Where the sign closes: not after white space, and `_` not within a word. */
function closing(source, sign, from, missing) {
  if (missing.has(sign)) return -1;
  for (let at = source.indexOf(sign, from); at >= 0; at = source.indexOf(sign, at + 1)) {
    if (/\s/.test(source[at - 1]) || (sign[0] === "_" && /\w/.test(source[at + sign.length] ?? ""))) continue;
    if (sign.length === 1 && isDoubled(source, sign, at)) continue;
    return source[at + sign.length] === sign[0] ? at + 1 : at; // of three, the inner one belongs to a sign within
  }
  missing.add(sign);
  return -1;
}

function runOf(source, at) {
  let end = at + 1;
  while (source[end] === source[at]) end += 1;
  return end - at;
}

/** One of exactly two, which belong to the longer sign. */
function isDoubled(source, sign, at) {
  const before = source[at - 1] === sign;
  const behind = source[at + 1] === sign;
  return before !== behind && source[at + (before ? -2 : 2)] !== sign;
}

function after(source, sign, from, missing) {
  if (missing.has(sign)) return -1;
  const at = source.indexOf(sign, from);
  if (at < 0) missing.add(sign);
  return at;
}
