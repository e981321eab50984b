"use strict";
// The tables of figures, the plots, and where the data comes from.

const TABLE_STEP = 200;

function showOverview(overview) {
  document.title = visible(overview.title);
  byId("title").textContent = visible(overview.title);
  byId("description").textContent = visible(overview.description);
  byId("cells").append(sortableTable("Cells", overview.columns, overview.cells.map((cell) => cell.figures)));
  byId("averages-section").hidden = overview.averages.rows.length === 0;
  byId("averages").append(sortableTable("Averages over domains", overview.averages.columns, overview.averages.rows));
  byId("plots").append(...plotElements(overview));
  byId("provenance").append(...provenance(overview));
}

// A row is a list of figures {text, value, interval}; rows are sorted by value.
function sortableTable(name, columns, rows) {
  const body = element("tbody");
  const foot = element("div");
  const buttons = columns.map((column, at) => element("button", { type: "button", click: () => sort(at) }, column));
  const heads = buttons.map((button, at) =>
    element("th", { scope: "col", class: rows.some((row) => typeof row[at].value === "number") ? "number" : "" }, button));
  let sorted = null;
  function sort(at) {
    const numeric = rows.some((row) => typeof row[at].value === "number");
    const descending = sorted === null || sorted.at !== at ? numeric : !sorted.descending;
    sorted = { at, descending };
    heads.forEach((head, each) => {
      if (each === at) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const sign = descending ? -1 : 1;
    fill([...rows].sort((a, b) => sign * compareValues(a[at].value, b[at].value)));
  }
  function fill(ordered) {
    body.replaceChildren();
    foot.replaceChildren();
    appendInSteps(body, foot, ordered, TABLE_STEP, (row) => element("tr", {}, row.map(figureCell)));
  }
  fill(rows);
  const caption = element("caption", { class: "hidden-text" }, name);
  return element("div", {}, element("table", {}, caption, element("thead", {}, element("tr", {}, heads)), body), foot);
}

function compareValues(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "number" || typeof b === "number") return typeof a === "number" ? 1 : -1;
  return a.localeCompare(b, "en", { numeric: true });
}

function figureCell(figure, at) {
  const content = figure.interval ? [intervalBar(figure.interval), " ", figure.text] : [figure.text];
  const numeric = typeof figure.value === "number";
  if (at === 0) return element("th", { scope: "row", class: numeric ? "number" : "" }, content);
  return element("td", { class: numeric ? "number" : "" }, content);
}

// The interval from 0 to 1 as a bar with a mark at the value; the text next to it says the same.
function intervalBar([low, value, high]) {
  const range = element("span", { class: "interval-range" });
  range.style.left = `${100 * low}%`;
  range.style.width = `${100 * (high - low)}%`;
  const mark = element("span", { class: "interval-mark" });
  mark.style.left = `${100 * value}%`;
  return element("span", { class: "interval", "aria-hidden": "true" }, range, mark);
}

function plotElements(overview) {
  if (overview.plots.length === 0) return [element("p", { class: "caption" }, overview.plots_hint)];
  return overview.plots.map((plot) =>
    element("figure", {},
      element("a", { href: plot.file }, element("img", { src: plot.file, alt: plot.title, loading: "lazy" })),
      element("figcaption", {}, plot.title)));
}

function provenance(overview) {
  const facts = element("dl", { class: "facts" });
  for (const [name, text] of overview.facts) facts.append(element("dt", {}, name), element("dd", {}, text));
  const notes = overview.notes.filter(([, remarks]) => remarks.length > 0).map(([domain, remarks]) =>
    element("div", {}, element("h3", {}, `Notes on the data of ${domain}`),
      element("ul", {}, remarks.map((remark) => element("li", {}, remark)))));
  const hashes = element("details", {}, element("summary", {}, "Hashes of models and data (SHA-256)"),
    element("div", { class: "scroll" }, element("table", {},
      element("thead", {}, element("tr", {},
        ["of", "file", "SHA-256"].map((head) => element("th", { scope: "col" }, head)))),
      element("tbody", {}, overview.hashes.map(([owner, file, sha]) =>
        element("tr", {}, element("td", {}, owner), element("td", {}, file),
          element("td", {}, element("code", {}, sha))))))));
  const settings = element("details", {}, element("summary", {}, "All settings of each cell"));
  settings.addEventListener("toggle", () => {
    const list = element("div");
    appendInSteps(list, settings, overview.cells, TABLE_STEP, (cell) =>
      element("details", {}, element("summary", {}, `${cell.label} (${cell.id})`), element("pre", {}, cell.settings)));
    settings.append(list);
  }, { once: true });
  return [facts, ...notes, hashes, settings];
}
