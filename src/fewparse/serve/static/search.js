// The search while it runs: examples, prompt, the rounds with their trees, and what it cost.

import { element, plural, replace } from "./dom.js";
import { HypothesisTree } from "./hypotheses.js";

export class SearchView {
  constructor(parent) {
    this.parent = parent;
    this.rounds = [];
    this.status = element("p", { class: "status" }, "Waiting for the model …");
    this.prompted = element("div");
    this.list = element("ol", { class: "rounds" });
    this.cost = element("div");
    replace(parent, this.status, this.prompted, this.list, this.cost);
    this.scheduled = false;
  }

  add(name, event) {
    switch (name) {
      case "Queued":
        if (event.waiting) replace(this.status, `Waiting for ${plural(event.waiting, "other request")} …`);
        break;
      case "Started":
        replace(this.status, element("span", { class: "spinner", "aria-hidden": "true" }), "Searching …");
        break;
      case "Prompted":
        this.showPrompt(event);
        break;
      case "RoundStarted":
        this.startRound(event);
        break;
      default:
        this.current(event).add(event);
        if (name === "RoundEnded") this.rounds.at(-1).kept = event.kept;
    }
    this.schedule();
  }

  startRound(event) {
    const tree = new HypothesisTree(event.prefixes);
    const place = element("div");
    const title = element("h3", {});
    this.rounds.push({ number: event.number, live: event.prefixes.length, samples: { all: 0, cut: 0 }, tree, place, title, kept: null, changed: true });
    this.list.append(element("li", {}, title, place));
  }

  current(event) {
    if (!this.rounds.length) this.startRound({ number: 1, prefixes: [""] });
    const round = this.rounds.at(-1);
    round.changed = true;
    if (event.event === "Sampled") {
      round.samples.all += 1;
      if (event.valid < event.pieces.length) round.samples.cut += 1;
    }
    return round.tree;
  }

  // Draw at most once for every frame, however many events arrive.
  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      for (const round of this.rounds.filter((each) => each.changed)) this.draw(round);
    });
  }

  draw(round) {
    round.changed = false;
    const facts = [round.live === 1 ? "1 live prefix" : `${round.live} live prefixes`];
    if (round.samples.all) facts.push(plural(round.samples.all, "sample"));
    if (round.samples.cut) facts.push(`${round.samples.cut} cut`);
    if (round.kept) facts.push(`${round.kept.length} kept`);
    replace(round.title, `Round ${round.number}`, element("span", { class: "note" }, facts.join(" · ")));
    replace(round.place, round.tree.render());
  }

  showPrompt(event) {
    const parts = [];
    if (event.examples.length) {
      const scores = event.similarities ?? [];
      const most = Math.max(...scores, 1e-9);
      const rows = event.examples.map(([utterance, output], i) => element("li", {},
        scores[i] === undefined ? null : element("span", { class: "bar", "aria-hidden": "true" }, meter(scores[i] / most)),
        element("span", { class: "pair" }, element("span", {}, utterance), element("code", {}, output)),
        scores[i] === undefined ? null : element("span", { class: "score", title: "similarity" }, scores[i].toFixed(2))));
      parts.push(element("details", { open: true }, element("summary", {}, plural(rows.length, "retrieved example")),
        element("ol", { class: "retrieved" }, rows)));
    }
    parts.push(element("details", {}, element("summary", {}, "Prompt"), element("pre", { tabindex: "0" }, event.prompt)));
    replace(this.prompted, parts);
  }

  finish(parse) {
    replace(this.status, legend());
    const usage = parse.usage;
    const facts = [
      ["requests", usage.requests], ["rounds", usage.rounds],
      ["prompt tokens", usage.prompt_tokens], ["generated tokens", usage.completion_tokens],
      ["seconds in the model", usage.seconds.toFixed(2)],
      ["cost", usage.cost === null ? "unknown" : usage.cost === 0 ? "free" : `$${usage.cost.toFixed(6)}`],
    ];
    replace(this.cost, element("dl", { class: "facts" }, facts.map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, value)))));
  }

  stop(text) {
    replace(this.status, text);
  }
}

// A bar in SVG: the policy of the page allows no style attributes.
function meter(share) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 100 8");
  svg.setAttribute("preserveAspectRatio", "none");
  for (const [style, width] of [["back", 100], ["fill", Math.round(100 * Math.max(0, share))]]) {
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    bar.setAttribute("class", style);
    bar.setAttribute("width", width);
    bar.setAttribute("height", 8);
    svg.append(bar);
  }
  return svg;
}
export { meter };

function legend() {
  return element("span", { class: "legend" },
    element("span", { class: "valid" }, "valid"), element("s", { class: "cut" }, "cut"),
    element("span", { class: "choice" }, "back-off or branch"), element("span", { class: "forced" }, "forced"),
    element("span", { class: "score" }, "score"));
}
