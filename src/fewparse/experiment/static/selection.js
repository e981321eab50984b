"use strict";
// Which items are shown: the state in the fragment of the address, and the filters.

const DEFAULTS = { item: "", cell: "", domain: "", in: "", show: "all", other: "", search: "", page: "1" };
const COMPARING = new Set(["disagreement", "gained", "lost"]);

// The fragment has the parameters that differ from the defaults: #item=calendar/17&cell=07675326b6&show=wrong
function readState() {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(Object.entries(DEFAULTS).map(([name, value]) => [name, given.get(name) ?? value]));
}

function toHash(state) {
  const given = Object.entries(state).filter(([name, value]) => value !== DEFAULTS[name]);
  return "#" + given.map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%2F", "/")}`).join("&");
}

// Change the state; the event `hashchange` then shows it. With `replace`, the last state is not kept in the history.
function changeState(changes, replace = false) {
  const hash = toHash({ ...readState(), ...changes });
  if (replace) location.replace(hash);
  else location.hash = hash;
}

function itemName(item) {
  return `${item.domain}/${item.index}`;
}

function itemHash(item, cell) {
  return toHash({ ...DEFAULTS, item: itemName(item), cell: cell.id });
}

// A configuration is a set of cells that differ only in the domain; it is named by the id of any of its cells.
function configurationOf(overview, id, otherwise) {
  const found = overview.cells.find((cell) => cell.id === id);
  return overview.configurations[found ? found.configuration : Math.min(otherwise, overview.configurations.length - 1)];
}

function markOf(overview, configuration, item) {
  const at = configuration.cells[item.domain];
  return at === undefined ? null : overview.cells[at].marks[item.at];
}

function selectItems(overview, items, state) {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const here = configurationOf(overview, state.in, 0);
  const other = configurationOf(overview, state.other, 1);
  return items.filter((item) =>
    (state.domain === "" || item.domain === state.domain)
    && words.every((word) => item.text.includes(word))
    && matches(state.show, markOf(overview, here, item), () => markOf(overview, other, item)));
}

// A failed item counts as wrong, as in the accuracy; an item that is not finished counts as neither.
function matches(show, mark, otherMark) {
  const wrong = (each) => each === "0" || each === "f";
  switch (show) {
    case "right": return mark === "1";
    case "wrong": return wrong(mark);
    case "failed": return mark === "f";
    case "missing": return mark === "-";
    case "gained": return mark === "1" && wrong(otherMark());
    case "lost": return wrong(mark) && otherMark() === "1";
    case "disagreement": return (mark === "1" && wrong(otherMark())) || (wrong(mark) && otherMark() === "1");
    default: return true;
  }
}
