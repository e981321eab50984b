"use strict";
// The tables of figures, the plots, and where the data comes from.

const TABLE_STEP = 200;

function showOverview(overview) {
  document.title = visible(overview.title);
  byId("title").textContent = visible(overview.title);
  byId("description").textContent = visible(overview.description);
  byId("state").append(...overview.state.map((line) => element("p", {}, line)));
  byId("cells-note").textContent = visible(overview.note);
  byId("cells").append(sortableTable(overview.cells_table));
  byId("tables").append(...overview.tables.map(tableElement));
  byId("plots").append(...plotElements(overview));
  byId("provenance").append(...provenance(overview));
}

// A table below its title; a long list of tables stays readable, because each is closed at first.
function tableElement(table) {
  const note = table.note ? element("p", { class: "caption" }, table.note) : null;
  return element("details", {}, element("summary", {}, table.title), note, scrolling(table.title, sortableTable(table)));
}

function scrolling(label, ...content) {
  return element("div", { class: "scroll", role: "region", "aria-label": label, tabindex: "0" }, content);
}

// A table of texts whose first `names` columns are names, the others figures, with a bar in the first of them.
function sortableTable(table) {
  const body = element("tbody");
  const foot = element("div");
  const rows = table.rows.map((texts, at) => ({ texts, bar: table.bars?.[at] ?? null }));
  const buttons = table.heads.map((head, at) => element("button", { type: "button", click: () => sort(at) }, head));
  const heads = buttons.map((button, at) => element("th", { scope: "col", class: at < table.names ? "" : "number" }, button));
  let sorted = { at: -1, descending: false };
  function sort(at) {
    const descending = sorted.at === at ? !sorted.descending : at >= table.names;
    sorted = { at, descending };
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[at].setAttribute("aria-sort", descending ? "descending" : "ascending");
    const sign = descending ? -1 : 1;
    fill([...rows].sort((a, b) => sign * compareTexts(a.texts[at], b.texts[at])));
  }
  function fill(ordered) {
    body.replaceChildren();
    foot.replaceChildren();
    appendInSteps(body, foot, ordered, TABLE_STEP, (row) => tableRow(row, table.names));
  }
  fill(rows);
  const caption = element("caption", { class: "hidden-text" }, table.title);
  return element("div", {}, element("table", {}, caption, element("thead", {}, element("tr", {}, heads)), body), foot);
}

function tableRow({ texts, bar }, names) {
  return element("tr", {}, texts.map((text, at) => {
    if (at < names) return at === 0 ? element("th", { scope: "row" }, text) : element("td", {}, text);
    return element("td", { class: "number" }, at === names && bar ? intervalBar(bar) : null, text);
  }));
}

// Compare by the number at the start, such as that of "0.67 (0.30-0.90)"; texts without one come first.
function compareTexts(a, b) {
  const [first, second] = [a, b].map((text) => parseFloat(text.replace(/^[$+]/, "")));
  if (Number.isNaN(first) || Number.isNaN(second)) {
    return Number.isNaN(second) - Number.isNaN(first) || a.localeCompare(b, "en", { numeric: true });
  }
  return first - second || a.localeCompare(b, "en", { numeric: true });
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
      element("a", { href: plot.file }, element("img", { src: plot.file, alt: plot.title, loading: "lazy" }))));
}

function provenance(overview) {
  const notes = overview.notes.map(([domain, remarks]) =>
    element("div", {}, element("h3", {}, `Notes on the data of ${domain}`),
      element("ul", {}, remarks.map((remark) => element("li", {}, remark)))));
  const models = [element("h3", {}, overview.models.title), scrolling(overview.models.title, sortableTable(overview.models))];
  const hashes = { title: "Hashes of the data", heads: ["of", "file", "SHA-256"], rows: overview.hashes, names: 3 };
  const settings = element("details", {}, element("summary", {}, "All settings of each cell"));
  settings.addEventListener("toggle", () => {
    const list = element("div");
    settings.append(list);
    appendInSteps(list, settings, overview.cells, TABLE_STEP, (cell) =>
      element("details", {}, element("summary", {}, `${cell.label} (${cell.id})`), element("pre", {}, cell.settings)));
  }, { once: true });
  return [...notes, ...models, tableElement(hashes), settings];
}
