// The hypotheses of one round as a tree: what samples have in common is shown once.

import { element, visible } from "./dom.js";

// A node is one character; `cut` marks text that the constraint rejects, which never shares a node with valid text.
class CharNode {
  constructor(char, kind) {
    this.char = char;
    this.kind = kind;
    this.children = new Map();
    this.count = 0;
    this.tags = new Map();
    this.kept = null;
  }
  child(char, kind) {
    const key = (kind === "cut" ? "cut " : "") + char;
    if (!this.children.has(key)) this.children.set(key, new CharNode(char, kind));
    return this.children.get(key);
  }
  tag(name) {
    this.tags.set(name, (this.tags.get(name) ?? 0) + 1);
  }
}

export class HypothesisTree {
  constructor(prefixes) {
    this.root = new CharNode("", "before");
    for (const prefix of prefixes) this.walk(this.root, prefix, "before");
  }

  walk(from, text, kind, counted = false) {
    let node = from;
    for (const char of text) {
      node = node.child(char, kind);
      if (counted) node.count += 1;
    }
    return node;
  }

  add(event) {
    const start = this.walk(this.root, event.prefix ?? "", "before");
    switch (event.event) {
      case "Sampled": {
        const end = this.walk(start, event.pieces.slice(0, event.valid).join(""), "valid", true);
        if (event.valid < event.pieces.length) {
          this.walk(end, event.pieces.slice(event.valid).join(""), "cut", true).tag("cut");
        } else end.tag(event.outcome);
        break;
      }
      case "BackedOff":
        for (const choice of event.choices) this.walk(start, choice, "choice").tag(event.free ? "back-off" : "back-off, asked");
        break;
      case "Branched":
        this.walk(start, event.piece, "choice").tag("branch");
        break;
      case "Forced":
        this.walk(start, event.span, "forced").tag("forced");
        break;
      case "Spelled":
        for (const span of event.spans) this.walk(start, span, "forced").tag("spelled");
        break;
      case "Completed":
        this.walk(start, event.completion, "forced").tag("completed");
        break;
      case "RoundEnded":
        for (const kept of event.kept) this.walk(this.root, kept.text, "valid").kept = kept;
        break;
    }
  }

  render() {
    const list = element("ul", { class: "hypotheses" });
    list.append(...branches(this.root));
    return list;
  }
}

// The start of a word in which hypotheses part, with the space before it: it is shown with each of them.
const WORD_START = / ?[^\s()",]*$/;

function branches(node, carried = "") {
  const children = [...node.children.values()].sort((a, b) => rank(b) - rank(a));
  return children.flatMap((child) => segments(child, carried));
}

function rank(node) {
  return (node.kind === "cut" ? 0 : 1000) + (best(node) === null ? 0 : 500 + best(node)) + node.count / 100;
}

function best(node) {
  let found = node.kept?.score ?? null;
  for (const child of node.children.values()) {
    const score = best(child);
    if (score !== null && (found === null || score > found)) found = score;
  }
  return found;
}

// A run of characters up to the next branching, mark or change of kind, after the carried start of a word.
function segments(start, carried) {
  const parts = carried ? [piece(carried, start.kind === "cut" ? "valid" : start.kind)] : [];
  let node = start;
  let text = "";
  for (;;) {
    text += node.char;
    const [next] = node.children.values();
    const marked = node.tags.size > 0 || node.kept !== null;
    if (node.children.size !== 1 || marked) {
      const rest = node.children.size > 1 && !marked ? WORD_START.exec(text)[0] : "";
      const shown = text.slice(0, text.length - rest.length);
      if (shown) parts.push(piece(shown, node.kind));
      if (!shown && !marked && node.children.size > 1 && parts.length <= (carried ? 1 : 0)) return branches(node, carried + rest);
      const below = branches(node, rest);
      if (parts.every((each) => !each.textContent.trim())) {
        for (const each of parts) each.textContent = each.textContent.replaceAll(" ", "␣"); // otherwise nothing is seen
      }
      return [element("li", {}, element("span", { class: "hypothesis" }, parts, marks(node)),
        below.length ? element("ul", {}, below) : null)];
    }
    if (next.kind !== node.kind) {
      parts.push(piece(text, node.kind));
      text = "";
    }
    node = next;
  }
}

function piece(text, kind) {
  const shown = visible(text).replaceAll("\n", "↵");
  return kind === "cut" ? element("s", { class: "cut" }, shown) : element("span", { class: kind }, shown);
}

function marks(node) {
  const found = [];
  for (const [name, count] of node.tags) {
    if (name === "back-off" && node.count > 0) continue;
    const times = count > 1 ? ` ×${count}` : "";
    found.push(element("span", { class: `mark ${name.split(/\W/)[0]}` }, name === "cut" ? `✂ cut${times}` : name + times));
  }
  if (node.kept !== null) {
    const label = node.kept.finished ? "kept, finished" : "kept";
    found.push(element("span", { class: "score", title: `${label}: mean log-probability of a token` }, node.kept.score.toFixed(3)));
  }
  return found.length ? [" ", found] : null;
}
