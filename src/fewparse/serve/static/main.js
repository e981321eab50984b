// The page: views, the form, and running a parse.

import { ApiError, get, parseEvents } from "./api.js";
import { byId, element, options, plural, replace } from "./dom.js";
import { showResult } from "./result.js";
import { startScratch } from "./scratch.js";
import { SearchView } from "./search.js";

const described = new Map();
let running = null;

async function describe(name) {
  if (!described.has(name)) described.set(name, await get(`v1/domains/${name}`));
  return described.get(name);
}

async function chooseDomain(name) {
  const domain = await describe(name);
  options(byId("target"), domain.targets.map((target) => [target, target]), domain.options.target);
  options(byId("decoder"), domain.decoders.map((decoder) => [decoder, decoder]), domain.options.decoder);
  byId("width").value = domain.options.width;
  byId("width").max = domain.limits.width;
  byId("adapter-field").hidden = domain.options.adapter === null;
  byId("adapter").value = "";
  const sides = domain.grammar?.sides;
  const grammar = sides ? plural((sides.program ?? sides.text).productions, "production") : "no grammar"; // "text": of a plain grammar
  const size = `${plural(domain.examples_count, "example")}, ${grammar}`;
  replace(byId("domain-about"), `${domain.description} `, element("span", { class: "dim" }, `(${size})`),
    domain.reload_error ? element("strong", { class: "warn" }, ` ${domain.reload_error}`) : null);
  replace(byId("samples"), domain.samples.map((text) => element("button", {
    type: "button", class: "chip",
    click: () => { byId("utterance").value = text; run(); },
  }, text)));
  return domain;
}

function request() {
  const asked = { domain: byId("domain").value, utterance: byId("utterance").value.trim(), options: {} };
  const defaults = described.get(asked.domain).options;
  for (const name of ["target", "decoder"]) if (byId(name).value !== defaults[name]) asked.options[name] = byId(name).value;
  const width = byId("width").valueAsNumber;
  if (width && width !== defaults.width) asked.options.width = width;
  if (byId("adapter").value) asked.options.adapter = byId("adapter").value;
  return asked;
}

async function run() {
  if (!byId("ask").reportValidity()) return;
  running?.abort();
  const mine = (running = new AbortController());
  const asked = request();
  history.replaceState(null, "", link(asked));
  showProblem(null);
  byId("output").hidden = false;
  byId("stop").hidden = false;
  replace(byId("result"), element("p", { class: "status" }, element("span", { class: "spinner", "aria-hidden": "true" }), "Parsing …"));
  const view = new SearchView(byId("search"));
  try {
    for await (const [name, data] of parseEvents(asked, mine.signal)) {
      if (name === "Parsed") {
        view.finish(data);
        showResult(byId("result"), data, asked, described.get(asked.domain));
      } else if (name === "Failed") throw new ApiError(data.error);
      else view.add(name, data);
    }
  } catch (error) {
    if (running !== mine) return;
    replace(byId("result"), element("p", { class: "note" }, "No parse."));
    view.stop(mine.signal.aborted ? "Stopped." : "");
    byId("output").hidden = !mine.signal.aborted && !view.rounds.length;
    if (!mine.signal.aborted) showProblem(error);
  } finally {
    if (running === mine) {
      running = null;
      byId("stop").hidden = true;
    }
  }
}

function showProblem(error) {
  byId("problem").hidden = error === null;
  if (error === null) return;
  replace(byId("problem"), element("strong", {}, error.message), error.hint ? element("span", {}, error.hint) : null);
  if (!(error instanceof ApiError)) throw error;
}

function link(asked) {
  const fields = new URLSearchParams({ domain: asked.domain, utterance: asked.utterance, ...asked.options });
  return `#parse?${fields}`;
}

async function openLink() {
  const [view, fields] = location.hash.slice(1).split("?");
  if (view === "grammar") select("grammar");
  if (view !== "parse" || !fields) return;
  const values = new URLSearchParams(fields);
  const name = values.get("domain");
  const served = [...byId("domain").options].map((option) => option.value);
  if (name !== null && !served.includes(name)) {
    throw new ApiError({ code: "unknown_domain", message: `This server has no domain ${name}.`, hint: `It has ${served.join(", ")}.` });
  }
  if (name !== null) {
    byId("domain").value = name;
    await chooseDomain(name);
  }
  for (const name of ["utterance", "target", "decoder", "width", "adapter"]) {
    if (values.has(name)) byId(name).value = values.get(name);
  }
  if (values.get("utterance")) run();
}

const TABS = ["parse", "grammar"];
function select(name) {
  for (const each of TABS) {
    const chosen = each === name;
    byId(`view-${each}`).hidden = !chosen;
    byId(`tab-${each}`).setAttribute("aria-selected", chosen);
    byId(`tab-${each}`).tabIndex = chosen ? 0 : -1;
  }
  if (name === "grammar") startScratch();
}

function startTabs() {
  for (const [i, name] of TABS.entries()) {
    const tab = byId(`tab-${name}`);
    tab.addEventListener("click", () => {
      select(name);
      history.replaceState(null, "", name === "grammar" ? "#grammar" : "#");
    });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = TABS[(i + step + TABS.length) % TABS.length];
      select(next);
      byId(`tab-${next}`).focus();
    });
  }
}

function startTheme() {
  const root = document.documentElement;
  const stored = localStorage.getItem("fewparse-theme");
  if (stored) root.dataset.theme = stored;
  byId("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("fewparse-theme", root.dataset.theme);
  });
}

async function start() {
  startTheme();
  startTabs();
  byId("ask").addEventListener("submit", (event) => { event.preventDefault(); run(); });
  byId("stop").addEventListener("click", () => running?.abort());
  try {
    const { domains } = await get("v1/domains");
    options(byId("domain"), domains.map((domain) => [domain.name, domain.name]), domains[0].name);
    byId("domain").addEventListener("change", () => chooseDomain(byId("domain").value).catch(showProblem));
    await chooseDomain(domains[0].name);
    await openLink();
  } catch (error) {
    showProblem(error);
  }
}

addEventListener("hashchange", () => openLink().catch(showProblem));
start();
