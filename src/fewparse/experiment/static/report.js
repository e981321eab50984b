"use strict";
// Starts the page: shows the overview, and keeps the list of items equal to the state in the address.

const PAGE_ITEMS = 50;
const SEARCH_MILLISECONDS = 200;
let overview = null;
let items = [];
let shownList = null;
let openRow = null;

document.addEventListener("DOMContentLoaded", () => {
  overview = fewparseData.overview;
  if (overview === undefined) {
    byId("description").textContent = "data/overview.js cannot be loaded. Is the folder of the report complete?";
    return;
  }
  items = readItems();
  showOverview(overview);
  prepareFilters();
  window.addEventListener("hashchange", () => showState(false));
  showState(true);
});

function readItems() {
  return overview.items.map((item) => ({ ...item, text: `${item.context}\n${item.utterance}\n${item.gold}`.toLowerCase() }));
}

function prepareFilters() {
  const options = overview.configurations.map((each) =>
    [overview.cells[Object.values(each.cells)[0]].id, each.label]);
  for (const id of ["in", "other"]) byId(id).append(...options.map(([value, label]) => element("option", { value }, label)));
  byId("domain").append(element("option", { value: "" }, "all domains"),
    ...overview.domains.map((domain) => element("option", { value: domain }, domain)));
  byId("domain-field").hidden = overview.domains.length < 2;
  byId("items").classList.toggle("several-domains", overview.domains.length > 1);
  for (const id of ["domain", "in", "show", "other"]) {
    byId(id).addEventListener("change", () => changeState({ [id]: byId(id).value, page: "1" }));
  }
  let timer = 0;
  byId("search").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => changeState({ search: byId("search").value, page: "1" }, true), SEARCH_MILLISECONDS);
  });
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  for (const button of document.querySelectorAll("[data-section]")) {
    button.addEventListener("click", () => byId(button.dataset.section).focus());
  }
}

function showState(first) {
  const state = readState();
  showFilters(state);
  const selected = selectItems(overview, items, state);
  const opened = selected.findIndex((item) => itemName(item) === state.item);
  const pages = Math.max(1, Math.ceil(selected.length / PAGE_ITEMS));
  const wanted = opened >= 0 ? Math.floor(opened / PAGE_ITEMS) + 1 : Math.trunc(Number(state.page)) || 1;
  const page = Math.min(Math.max(1, wanted), pages);
  showList(state, selected, page);
  showPages(page, pages);
  showOpened(state, opened >= 0 ? selected[opened] : null, first);
}

function showFilters(state) {
  const idOf = (configuration) => overview.cells[Object.values(configuration.cells)[0]].id;
  byId("domain").value = state.domain;
  byId("in").value = idOf(configurationOf(overview, state.in, 0));
  byId("other").value = idOf(configurationOf(overview, state.other, 1));
  byId("show").value = state.show;
  byId("other-field").hidden = !COMPARING.has(state.show);
  if (document.activeElement !== byId("search")) byId("search").value = state.search;
}

function showList(state, selected, page) {
  const { item, cell, ...filters } = { ...state, page };
  const list = JSON.stringify(filters);
  if (list === shownList) return;
  shownList = list;
  openRow = null;
  const configuration = configurationOf(overview, state.in, 0);
  byId("count").textContent = `${selected.length.toLocaleString("en")} of ${plural(items.length, "item")}`;
  const start = (page - 1) * PAGE_ITEMS;
  byId("items").replaceChildren(
    ...selected.slice(start, start + PAGE_ITEMS).map((each) => itemRow(each, markOf(overview, configuration, each))));
}

function itemRow(item, mark) {
  const panel = element("div", { class: "panel", hidden: true });
  const cells = cellsOf(item);
  const right = cells.filter((cell) => cell.marks[item.at] === "1").length;
  const button = element("button", { type: "button", class: "item", "aria-expanded": "false", click: toggle },
    element("span", { class: "name" }, overview.domains.length > 1 ? itemName(item) : String(item.index)),
    element("span", { class: "utterance" }, item.utterance),
    mark === null ? null : markElement(mark),
    element("span", { class: "tally" }, `right in ${right} of ${plural(cells.length, "cell")}`));
  function toggle() {
    changeState({ item: panel.hidden ? itemName(item) : "", cell: "" });
  }
  return element("li", { "data-item": itemName(item) }, button, panel);
}

function cellsOf(item) {
  return overview.cells.filter((cell) => cell.domain === item.domain);
}

// Open the item of the state, close the one before, and show the chosen cell.
async function showOpened(state, item, scroll) {
  const name = item === null ? null : itemName(item);
  const row = [...byId("items").children].find((each) => each.dataset.item === name) ?? null;
  if (openRow !== null && openRow !== row) {
    openRow.querySelector("button.item").setAttribute("aria-expanded", "false");
    openRow.querySelector(".panel").hidden = true;
    openRow.querySelector(".panel").replaceChildren();
  }
  const before = openRow;
  openRow = row;
  if (row === null) return;
  const configuration = configurationOf(overview, state.in, 0);
  const usual = overview.cells[configuration.cells[item.domain]]?.id ?? "";
  const panel = row.querySelector(".panel");
  if (before === row) {
    panel.showCell?.(state.cell || usual);
    return;
  }
  row.querySelector("button.item").setAttribute("aria-expanded", "true");
  panel.hidden = false;
  await showItem(panel, item, cellsOf(item), state.cell || usual, (cell) => changeState({ cell }));
  if (scroll) row.scrollIntoView();
}

function showPages(page, pages) {
  const button = (label, target) => element("button", {
    type: "button", disabled: target < 1 || target > pages,
    click: () => changeState({ page: String(target), item: "", cell: "" }),
  }, label);
  byId("pages").hidden = pages === 1;
  byId("pages").replaceChildren(button("Previous", page - 1),
    element("span", {}, `page ${page} of ${pages}`), button("Next", page + 1));
}
