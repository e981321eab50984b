"use strict";
// The trace of a search: rounds with their live prefixes, samples, back-offs, branches and kept hypotheses.

const ROUNDS_STEP = 25;

function traceElement(events) {
  const rounds = element("ol", { class: "rounds" });
  const whole = element("div", { class: "trace" }, rounds);
  appendInSteps(rounds, whole, byRound(events), ROUNDS_STEP, roundElement);
  return whole;
}

// Group events by the round in which they happened; those outside of a round have number null.
function byRound(events) {
  const rounds = [];
  let current = null;
  for (const event of events) {
    if (event.event === "RoundStarted") rounds.push((current = { number: event.number, prefixes: event.prefixes, events: [], kept: null }));
    else {
      if (current === null) rounds.push((current = { number: null, prefixes: [], events: [], kept: null }));
      if (event.event === "RoundEnded") {
        current.kept = event.kept;
        current = null;
      } else current.events.push(event);
    }
  }
  return rounds;
}

function roundElement(round) {
  const title = round.number === null ? "Outside of a round" : `Round ${round.number}`;
  const prefixes = round.prefixes.map((prefix) =>
    element("li", {}, prefix === "" ? element("em", {}, "the empty prefix") : element("code", {}, oneLine(prefix))));
  const live = element("details", { class: "live" },
    element("summary", {}, `${round.prefixes.length} live ${round.prefixes.length === 1 ? "prefix" : "prefixes"}`),
    element("ul", {}, prefixes));
  const kept = (round.kept ?? []).map((hypothesis) => keptElement(hypothesis, round.prefixes));
  return element("li", {},
    element("h5", {}, title), round.number === null ? null : live,
    element("ul", { class: "events" }, round.events.map(eventElement), kept));
}

function eventElement(event) {
  switch (event.event) {
    case "Sampled": return sampleElement(event);
    case "BackedOff": {
      const kind = event.free ? "back-off" : "back-off, request";
      return line(kind, "step", before(event.prefix), choices(event.choices));
    }
    case "Branched": return line("branch", "step", before(event.prefix), code("chosen", event.piece));
    case "Forced": return line("forced", "step", before(event.prefix), code("chosen", event.span));
    case "Spelled": return line("spelled", "step", before(event.prefix), choices(event.spans));
    case "Completed": return line("completed", "step", before(event.prefix), code("chosen", event.completion));
    default: return line(event.event, "step", JSON.stringify(event));
  }
}

// The valid part of a sample, its first invalid token, and what was discarded after it.
function sampleElement(event) {
  const valid = event.pieces.slice(0, event.valid).join("");
  const parts = [before(event.prefix), code("valid", valid)];
  if (event.valid < event.pieces.length) {
    const rest = event.pieces.slice(event.valid + 1).join("");
    parts.push(element("span", { class: "cut" }, element("span", { class: "hidden-text" }, " cut: "),
      code("invalid", event.pieces[event.valid]), rest === "" ? null : element("s", {}, code("discarded", rest))));
  }
  return line(`sample, ${event.outcome}`, "sample", ...parts);
}

function keptElement(hypothesis, prefixes) {
  const longest = prefixes.filter((prefix) => hypothesis.text.startsWith(prefix))
    .reduce((a, b) => (b.length > a.length ? b : a), "");
  return line(hypothesis.finished ? "kept, finished" : "kept", "kept",
    element("span", { class: "score" }, score(hypothesis.score)),
    before(longest), code("valid", hypothesis.text.slice(longest.length)));
}

function line(kind, style, ...parts) {
  return element("li", { class: style }, element("span", { class: "kind" }, kind), element("span", { class: "text" }, parts));
}

function before(prefix) {
  return prefix === "" ? null : code("before", prefix);
}

function code(style, text) {
  return element("code", { class: style }, oneLine(text));
}

function choices(texts) {
  return element("span", { class: "choices" }, texts.map((text) => code("chosen choice", text)));
}

function score(value) {
  return typeof value === "number" ? value.toFixed(3) : value;
}
