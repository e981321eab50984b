// A program as a tree: S-expressions and JSON by their structure, anything else as text.

import { element } from "./dom.js";

const TOKEN = /\s*(\(|\)|"(?:[^"\\]|\\.)*"|[^\s()"]+)/y;
const MAX_DEPTH = 60;

export function treeOf(program) {
  const parsed = fromExpression(program) ?? fromJson(program);
  if (parsed === null) return element("pre", { tabindex: "0" }, program);
  return element("ul", { class: "tree" }, node(parsed, 0));
}

// Return nested lists of the atoms of an S-expression; null for another text.
function fromExpression(text) {
  if (!text.startsWith("(")) return null;
  const stack = [[]];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const found = TOKEN.exec(text);
    if (found === null) return null;
    if (found[1] === "(") stack.push([]);
    else if (found[1] === ")") {
      const closed = stack.pop();
      if (!stack.length) return null;
      stack.at(-1).push(closed);
    } else stack.at(-1).push(found[1]);
  }
  return stack.length === 1 && stack[0].length === 1 ? stack[0][0] : null;
}

function fromJson(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null ? jsonNode("", value) : null;
  } catch {
    return null;
  }
}

function jsonNode(name, value) {
  if (typeof value !== "object" || value === null) return name ? [name, JSON.stringify(value)] : JSON.stringify(value);
  const children = Object.entries(value).map(([key, each]) => jsonNode(Array.isArray(value) ? `[${key}]` : key, each));
  return [name || (Array.isArray(value) ? "list" : "object"), ...children];
}

function node(value, depth) {
  if (!Array.isArray(value)) return element("li", {}, element("span", { class: "leaf" }, value));
  const named = !Array.isArray(value[0]);
  const head = named ? value[0] : "( )";
  const children = named ? value.slice(1) : value;
  return element("li", {}, element("span", { class: "node" }, head ?? "( )"),
    children.length ? element("ul", {}, depth > MAX_DEPTH ? element("li", {}, "…") : children.map((each) => node(each, depth + 1))) : null);
}
