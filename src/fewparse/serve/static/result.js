// A parse: reading, program, answer, confidence, question, candidates, and what to do with it.

import { ApiError, BASE, hasKey, post } from "./api.js";
import { correctionForm } from "./correction.js";
import { button, copy, element, replace, toast, visible } from "./dom.js";
import { meter } from "./search.js";
import { treeOf } from "./tree.js";

const DECISIONS = { execute: "confident", confirm: "please confirm", decline: "probably out of scope" };

export function showResult(parent, parse, asked, domain) {
  if (parse.output === null) {
    replace(parent, element("p", { class: "problem" }, `No parse: ${parse.failure}`));
    return;
  }
  const view = {
    badge: element("span", { class: "badge" }, DECISIONS[parse.decision]),
    reading: element("p", { class: "reading" }),
    program: element("pre", { class: "program", tabindex: "0", "aria-label": "Program" }),
    answer: element("div", { class: "answer" }),
    tree: element("details", { open: true }),
    feedback: element("div", { class: "feedback" }),
  };
  const uncertain = parse.decision === "confirm" || parse.decision === "decline"; // no answer before it is confirmed
  showProgram(view, parse.program, parse.target === "canonical" ? parse.output : null, asked, domain);
  if (!uncertain) showAnswer(view.answer, parse.answer, parse.answer_error);
  replace(parent, confidence(parse, view.badge), view.reading, view.program, view.answer, view.feedback, more(parse, asked, view.tree));
  showFeedback(parse, asked, domain, view);
}

// Show a program, its canonical reading, which is asked for if it is not given, and its tree.
function showProgram(view, program, reading, asked, domain) {
  replace(view.program, program ?? "(no program)");
  replace(view.reading, reading);
  if (reading === null && program && domain.targets.includes("canonical")) showReading(view.reading, program, asked.domain);
  view.tree.hidden = !program;
  if (program) replace(view.tree, element("summary", {}, "Program as a tree"), treeOf(program));
}

// Show the program that was chosen or corrected to, and its answer.
async function showOther(view, program, reading, asked, domain) {
  showProgram(view, program, reading, asked, domain);
  replace(view.answer);
  if (!domain.executes) return;
  const found = await post("v1/execute", { domain: asked.domain, program });
  showAnswer(view.answer, found.answer, found.error);
}

async function showReading(place, program, domain) {
  try {
    replace(place, (await post("v1/translate", { domain, text: program, to: "utterance" })).output ?? "");
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}

function confidence(parse, badge) {
  if (parse.confidence === null) return null;
  const percent = `${Math.round(100 * parse.confidence)}%`;
  return element("p", { class: `confidence ${parse.decision ?? ""}` },
    element("span", { class: "bar", "aria-hidden": "true" }, meter(parse.confidence)), `${percent} sure`,
    parse.decision ? badge : null);
}

function showAnswer(place, answer, error) {
  if (error) replace(place, element("p", { class: "problem" }, error));
  else if (answer === null || answer === undefined) replace(place);
  else if (answer?.columns && answer?.rows) replace(place, table(answer));
  else if (Array.isArray(answer) && answer.every((each) => typeof each === "string")) {
    replace(place, answer.length ? element("ul", { class: "list" }, answer.map((each) => element("li", {}, each))) : "nothing");
  } else replace(place, typeof answer === "string" ? answer : element("code", {}, JSON.stringify(answer, null, 1)));
}

function table({ columns, rows, truncated }) {
  const head = element("tr", {}, columns.map((name) => element("th", { scope: "col" }, name)));
  const body = rows.slice(0, 200).map((row) => element("tr", {}, row.map((cell) =>
    element("td", { class: typeof cell === "number" ? "number" : "" }, cell === null ? "NULL" : cell))));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Answer" },
    element("table", {}, element("thead", {}, head), element("tbody", {}, body)),
    rows.length > 200 || truncated ? element("p", { class: "note" }, "There are more rows.") : null);
}

function showFeedback(parse, asked, domain, view) {
  const place = view.feedback;
  const send = async (fields, thanks, reading = null) => {
    try {
      const { program } = await post("v1/feedback", { id: parse.id, ...fields });
      replace(place, element("p", { class: "thanks", role: "status" }, thanks));
      view.badge.remove();
      if (fields.outcome === "accepted") showAnswer(view.answer, parse.answer, parse.answer_error);
      else if (program) await showOther(view, program, reading, asked, domain);
    } catch (error) {
      toast([error.message, error.hint].filter(Boolean).join(" "));
      if (!(error instanceof ApiError)) throw error;
    }
  };
  const correct = () => replace(place, correctionForm(parse, asked, domain, send, () => showFeedback(parse, asked, domain, view)));
  const choose = ({ candidate, text, program }) => send(candidate === 0 ? { outcome: "accepted" } : { outcome: "chosen", candidate },
    `Noted: ${text}`, text === program ? null : text);
  const others = [
    button("Correct it …", correct),
    button("Out of scope", () => send({ outcome: "out_of_scope" }, "Noted: nothing in this domain expresses it.")),
  ];
  if (parse.question) {
    replace(place, element("p", { class: "question" }, parse.question.choices.length > 1 ? "Did you mean …" : "Did you mean this?"),
      element("div", { class: "buttons stack" }, parse.question.choices.map((choice) => button(choice.text, () => choose(choice), "primary"))),
      element("div", { class: "buttons" }, others));
  } else {
    replace(place, element("div", { class: "buttons", role: "group", "aria-label": "Feedback" },
      button("✓ Right", () => send({ outcome: "accepted" }, "Noted: this parse is right.")),
      button("✗ Wrong", () => send({ outcome: "rejected" }, "Noted: this parse is wrong.")), others));
  }
}

function more(parse, asked, tree) {
  const candidates = parse.candidates.map((each, i) => element("tr", {},
    element("td", { class: "number" }, i + 1), element("td", { class: "number" }, each.score.toFixed(2)),
    element("td", {}, element("span", {}, each.text), each.program && each.program !== each.text ? element("code", {}, each.program) : null)));
  return element("div", { class: "more" },
    tree,
    element("details", { open: parse.candidates.length > 1 }, element("summary", {}, `Candidates (${parse.candidates.length})`),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Candidates" }, element("table", { class: "candidates" },
        element("thead", {}, element("tr", {}, ["rank", "score", "output"].map((name) => element("th", { scope: "col" }, name)))),
        element("tbody", {}, candidates)))),
    element("div", { class: "buttons small", role: "group", "aria-label": "Copy" },
      button("Copy JSON", () => copy(JSON.stringify(parse, null, 2))),
      button("curl", () => copy(curl(asked))),
      button("Python", () => copy(python(asked))),
      button("Link", () => copy(location.href))));
}

function curl(asked) {
  const body = visible(JSON.stringify(asked)).replaceAll("'", "'\\''");
  const key = hasKey() ? ' -H "Authorization: Bearer $FEWPARSE_API_KEY"' : "";
  return `curl ${BASE}v1/parse${key} -H 'Content-Type: application/json' -d '${body}'`;
}

function python(asked) {
  const named = Object.entries(asked.options).map(([name, value]) => `, ${name}=${JSON.stringify(value)}`).join("");
  return [
    "from fewparse import Parser", "",
    `parser = Parser.from_url(${JSON.stringify(BASE)}, domain=${JSON.stringify(asked.domain)}${named})`,
    `print(parser.parse(${visible(JSON.stringify(asked.utterance))}).program)`,
  ].join("\n");
}
