// A parse: reading, program, answer, confidence, question, candidates, and what to do with it.

import { ApiError, BASE, post } from "./api.js";
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
  const reading = element("p", { class: "reading" });
  if (parse.target === "canonical") replace(reading, parse.output);
  else if (domain.targets.includes("canonical") && parse.program) showReading(reading, parse.program, asked.domain);
  const answer = element("div", { class: "answer" });
  showAnswer(answer, parse.answer, parse.answer_error);
  const feedback = element("div", { class: "feedback" });
  replace(parent, confidence(parse), reading,
    element("pre", { class: "program", tabindex: "0", "aria-label": "Program" }, parse.program ?? "(no program)"),
    answer, feedback, more(parse, asked));
  showFeedback(feedback, parse, asked, domain, answer);
}

async function showReading(place, program, domain) {
  try {
    replace(place, (await post("v1/translate", { domain, text: program, to: "utterance" })).output ?? "");
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}

function confidence(parse) {
  if (parse.confidence === null) return null;
  const percent = `${Math.round(100 * parse.confidence)}%`;
  return element("p", { class: `confidence ${parse.decision ?? ""}` },
    element("span", { class: "bar", "aria-hidden": "true" }, meter(parse.confidence)), `${percent} sure`,
    parse.decision ? element("span", { class: "badge" }, DECISIONS[parse.decision]) : null);
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

function showFeedback(place, parse, asked, domain, answer) {
  const send = async (fields, thanks) => {
    try {
      await post("v1/feedback", { id: parse.id, ...fields });
      replace(place, element("p", { class: "thanks", role: "status" }, thanks));
    } catch (error) {
      toast([error.message, error.hint].filter(Boolean).join(" "));
      if (!(error instanceof ApiError)) throw error;
    }
  };
  const correct = () => replace(place, correctionForm(parse, asked, domain, send, () => showFeedback(place, parse, asked, domain, answer)));
  const choose = async (choice) => {
    await send(choice.candidate === 0 ? { outcome: "accepted" } : { outcome: "chosen", candidate: choice.candidate }, `Noted: ${choice.text}`);
    if (choice.candidate === 0 || !domain.executes) return;
    try {
      const found = await post("v1/execute", { domain: asked.domain, program: choice.program });
      showAnswer(answer, found.answer, found.error);
    } catch (error) {
      toast(error.message);
    }
  };
  const others = [
    button("Correct it …", correct),
    button("Out of scope", () => send({ outcome: "out_of_scope" }, "Noted: nothing in this domain expresses it.")),
  ];
  if (parse.question) {
    replace(place, element("p", { class: "question" }, parse.question.choices.length > 1 ? "Did you mean …" : "Did you mean this?"),
      element("div", { class: "buttons" }, parse.question.choices.map((choice) => button(choice.text, () => choose(choice), "primary")), others));
  } else {
    replace(place, element("div", { class: "buttons", role: "group", "aria-label": "Feedback" },
      button("✓ Right", () => send({ outcome: "accepted" }, "Noted: this parse is right.")),
      button("✗ Wrong", () => send({ outcome: "rejected" }, "Noted: this parse is wrong.")), others));
  }
}

function more(parse, asked) {
  const candidates = parse.candidates.map((each, i) => element("tr", {},
    element("td", { class: "number" }, i + 1), element("td", { class: "number" }, each.score.toFixed(2)),
    element("td", {}, element("span", {}, each.text), each.program && each.program !== each.text ? element("code", {}, each.program) : null)));
  return element("div", { class: "more" },
    parse.program ? element("details", { open: true }, element("summary", {}, "Program as a tree"), treeOf(parse.program)) : null,
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
  const body = JSON.stringify(asked).replaceAll("'", "'\\''");
  return `curl ${BASE}v1/parse -H 'Content-Type: application/json' -d '${body}'`;
}

function python(asked) {
  const named = Object.entries(asked.options).map(([name, value]) => `, ${name}=${JSON.stringify(value)}`).join("");
  return [
    "from fewparse import Parser", "",
    `parser = Parser.from_url(${JSON.stringify(BASE)}, domain=${JSON.stringify(asked.domain)}${named})`,
    `print(parser.parse(${JSON.stringify(visible(asked.utterance))}).program)`,
  ].join("\n");
}
