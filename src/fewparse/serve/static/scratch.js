// A scratch domain: its grammar and examples are checked while they are edited.

import { ApiError, post } from "./api.js";
import { byId, debounced, element, plural, replace } from "./dom.js";

const GRAMMARS = {
  scfg: `start  -> "turn " state " " device | "turn " device " " state , "(" state " " device ")"

state  -> "on"
state  -> "off"
device -> "the lamp" , "lamp"
device -> "the radio" | "the music" , "radio"
`,
  lark: `start: "(" state " " device ")"

state: "on" | "off"
device: "lamp" | "radio"
`,
};
const EXAMPLES = `lights on please => (on lamp)
some music => (on radio)
shut off the music => (off radio)
`;

let started = false;
let seed = 0;
let latest = 0;

export function startScratch() {
  if (started) return;
  started = true;
  byId("grammar-text").value = GRAMMARS.scfg;
  byId("examples-text").value = EXAMPLES;
  const later = debounced(400, check);
  for (const id of ["grammar-text", "examples-text"]) byId(id).addEventListener("input", later);
  byId("dialect").addEventListener("change", () => {
    if (Object.values(GRAMMARS).includes(byId("grammar-text").value)) byId("grammar-text").value = GRAMMARS[byId("dialect").value];
    check();
  });
  byId("resample").addEventListener("click", () => {
    seed += 1;
    check();
  });
  check();
}

async function check() {
  const mine = ++latest;
  status("checking …", "");
  try {
    const { examples, mistakes } = readExamples(byId("examples-text").value);
    const body = { grammar: byId("grammar-text").value, dialect: byId("dialect").value, examples, sentences: 12, seed };
    const found = await post("v1/scratch", body);
    if (mine !== latest) return;
    const findings = [...mistakes, ...found.findings];
    status(found.passed && !mistakes.length ? "passed" : "failed", found.passed && !mistakes.length ? "good" : "bad");
    replace(byId("findings"), findings.length ? findings.map(finding) :
      element("li", { class: "good" }, `The grammar derives ${examples.length === 1 ? "the example" : `all ${plural(examples.length, "example")}`}.`));
    replace(byId("sentences"), found.sentences.map((each) => element("li", {},
      each.utterance === null ? null : element("span", {}, each.utterance), element("code", {}, each.program))));
  } catch (error) {
    if (mine !== latest) return;
    status("failed", "bad");
    replace(byId("findings"), element("li", { class: "error" }, error.message, error.hint ? ` ${error.hint}` : ""));
    if (!(error instanceof ApiError)) throw error;
  }
}

function status(text, style) {
  replace(byId("scratch-status"), text);
  byId("scratch-status").className = `badge ${style}`;
}

function readExamples(text) {
  const examples = [];
  const mistakes = [];
  for (const [i, line] of text.split("\n").entries()) {
    if (!line.trim()) continue;
    const [utterance, program] = line.split("=>").map((part) => part.trim());
    if (utterance && program) examples.push({ utterance, program });
    else mistakes.push({ level: "error", kind: "example", message: "write: utterance => program", location: `line ${i + 1}` });
  }
  return { examples, mistakes };
}

function finding(found) {
  const place = found.location?.replace("examples.jsonl:", "example ") ?? "";
  return element("li", { class: found.level }, element("strong", {}, `${found.level}: ${found.kind}`),
    place ? element("span", { class: "dim" }, ` ${place}`) : null, element("pre", { tabindex: "0" }, found.message));
}
