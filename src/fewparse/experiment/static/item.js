"use strict";
// One item: its gold program, the result of every cell, and the candidates and the trace of a chosen cell.

const CELLS_STEP = 100;
const CANDIDATES_STEP = 10;
const MARKS = { 1: "right", 0: "wrong", f: "failed", "-": "not finished" };
let traceIsOpen = false;

function markElement(mark) {
  return element("span", { class: `mark mark-${MARKS[mark].replace(" ", "-")}` }, MARKS[mark]);
}

// Fill a panel with an item. `choose` is called with the id of a cell that the reader chooses.
async function showItem(panel, item, cells, chosen, choose) {
  panel.replaceChildren(element("p", { class: "caption" }, "Loading"));
  let records;
  try {
    records = (await load(`items-${item.chunk}`))[item.position];
  } catch (error) {
    panel.replaceChildren(element("p", { class: "error" }, error.message));
    return;
  }
  const rows = cells.map((cell, at) => ({ cell, record: records[at] }));
  const detail = element("div", { class: "detail" });
  const body = element("tbody");
  const more = element("div");
  const buttons = new Map();
  appendInSteps(body, more, rows, CELLS_STEP, (row) => cellRow(row, item, buttons, choose));
  const heads = ["cell", "result", "prediction", "requests", "forward tokens", "seconds"];
  const numeric = new Set(heads.slice(3));
  panel.replaceChildren(
    goldElement(item),
    element("h4", {}, "Result of each cell"),
    element("div", { class: "scroll", role: "region", "aria-label": "Result of each cell", tabindex: "0" },
      element("table", { class: "results" },
        element("thead", {}, element("tr", {},
          heads.map((head) => element("th", { scope: "col", class: numeric.has(head) ? "number" : "" }, head)))), body), more),
    detail);
  panel.showCell = (id) => {
    for (const [each, button] of buttons) button.setAttribute("aria-pressed", String(each === id));
    const row = rows.find((each) => each.cell.id === id) ?? rows[0];
    detail.replaceChildren(...(row ? detailElements(row, item) : []));
  };
  panel.showCell(chosen);
}

function goldElement(item) {
  const facts = element("dl", { class: "facts" });
  const add = (name, content) => facts.append(element("dt", {}, name), element("dd", {}, content));
  if (item.context) add("Context", element("span", { class: "given" }, item.context));
  add("Utterance", element("span", { class: "given" }, item.utterance));
  add("Gold program", element("code", {}, item.gold));
  if (item.canonical) add("Canonical utterance", element("code", {}, item.canonical));
  add("Gold program in training data", item.first_seen === null ? "no" : `yes, first in example ${item.first_seen}`);
  return facts;
}

function cellRow({ cell, record }, item, buttons, choose) {
  const button = element("button", { type: "button", class: "choose", "aria-pressed": "false", click: () => choose(cell.id) }, cell.label);
  buttons.set(cell.id, button);
  const best = record?.candidates[0];
  const shown = best ? element("code", {}, best.program ?? best.output) : record?.failure ?? "";
  const cost = record && record.failure === null
    ? [record.usage.requests ?? 0, record.usage.forward_tokens ?? 0, (record.seconds + record.prompt_seconds).toFixed(2)]
    : ["", "", ""];
  return element("tr", {},
    element("th", { scope: "row" }, button),
    element("td", {}, markElement(cell.marks[item.at])),
    element("td", { class: "program" }, shown),
    cost.map((figure) => element("td", { class: "number" }, figure)));
}

function detailElements({ cell, record }, item) {
  const heading = element("h4", { class: "detail-heading" }, cell.label, " ", markElement(cell.marks[item.at]));
  const link = element("a", { class: "permalink", href: itemHash(item, cell) }, "Link to this item and cell");
  if (!record) return [heading, link];
  const failure = record.failure === null ? null : element("p", { class: "error" }, "Failed: ", record.failure);
  return [
    heading, link, ...(failure ? [failure] : []), ...candidateElements(record.candidates), costElement(record),
    ...(record.trace === null ? [] : [traceDetails(record.trace)]),
  ];
}

function candidateElements(candidates) {
  if (candidates.length === 0) return [];
  const body = element("tbody");
  const more = element("div");
  const outputs = candidates.some((each) => each.output !== each.program);
  appendInSteps(body, more, candidates.map((each, at) => ({ ...each, rank: at + 1 })), CANDIDATES_STEP, (each) =>
    element("tr", {},
      element("td", { class: "number" }, each.rank),
      element("td", {}, markElement(each.correct ? "1" : "0"), each.exact_match ? " exact" : ""),
      element("td", { class: "number" }, score(each.score)),
      element("td", { class: "number" }, score(each.model_score)),
      outputs ? element("td", { class: "program" }, element("code", {}, each.output)) : null,
      element("td", { class: "program" }, each.program === null ? element("em", {}, "no program") : element("code", {}, each.program))));
  const heads = ["rank", "result", "score", "model score", ...(outputs ? ["output"] : []), "program"];
  return [element("div", { class: "scroll", role: "region", "aria-label": "Candidates", tabindex: "0" },
    element("table", { class: "candidates" },
      element("caption", {}, plural(candidates.length, "candidate")),
      element("thead", {}, element("tr", {}, heads.map((head, at) =>
        element("th", { scope: "col", class: [0, 2, 3].includes(at) ? "number" : "" }, head)))), body), more)];
}

function costElement(record) {
  const { seconds, ...usage } = record.usage;
  const parts = Object.entries(usage).map(([name, value]) =>
    name === "cost" ? (value === null ? "cost unknown" : `cost $${value.toFixed(6)}`) : `${value.toLocaleString("en")} ${name.replaceAll("_", " ")}`);
  parts.push(`${record.prompt_seconds.toFixed(2)} s for the prompt`, `${record.seconds.toFixed(2)} s for decoding`);
  if (record.examples_dropped) parts.push(`${record.examples_dropped} examples did not fit`);
  return element("p", { class: "cost" }, parts.join(", "));
}

// The trace is loaded when it is opened; it stays open when another cell or item is chosen.
function traceDetails([chunk, position]) {
  const content = element("div", {}, element("p", { class: "caption" }, "Loading"));
  const details = element("details", { class: "trace-details" }, element("summary", {}, "Search trace"), content);
  let shown = false;
  details.addEventListener("toggle", async () => {
    traceIsOpen = details.open;
    if (!details.open || shown) return;
    shown = true;
    try {
      content.replaceChildren(traceElement((await load(`traces-${chunk}`))[position]));
    } catch (error) {
      content.replaceChildren(element("p", { class: "error" }, error.message));
    }
  });
  details.open = traceIsOpen;
  return details;
}
