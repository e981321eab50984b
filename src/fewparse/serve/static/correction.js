// Correct a parse: a program or a canonical utterance, checked and completed by the grammar while it is typed.

import { ApiError, post } from "./api.js";
import { button, debounced, element, replace, toast } from "./dom.js";

export function correctionForm(parse, asked, domain, send, cancel) {
  let target = parse.target;
  let latest = 0;
  let found = [];
  let active = -1;
  const input = element("input", {
    type: "text", id: "correction", class: "code", role: "combobox", "aria-expanded": "false", "aria-autocomplete": "list",
    "aria-controls": "completions", "aria-describedby": "correction-status", spellcheck: "false", autocomplete: "off",
  });
  const list = element("ul", { id: "completions", role: "listbox", "aria-label": "Continuations", class: "completions", hidden: true });
  const status = element("p", { id: "correction-status", class: "note", role: "status" });
  const submit = element("button", { type: "submit", class: "primary", disabled: true }, "Send the correction");

  async function check() {
    const mine = ++latest;
    const text = input.value;
    const chars = [...text]; // positions count characters, not UTF-16 units
    try {
      const [checked, completed] = await Promise.all([
        post("v1/check", { domain: asked.domain, text, target }),
        post("v1/complete", { domain: asked.domain, text, target, utterance: asked.utterance, limit: 12 }),
      ]);
      if (mine !== latest) return;
      submit.disabled = !checked.accepted;
      status.className = checked.accepted ? "note good" : "note";
      if (checked.accepted) replace(status, "✓ well-formed");
      else if (completed.valid === chars.length) replace(status, text ? "so far so good: go on" : "choose how it starts, or type");
      else {
        status.className = "note bad";
        replace(status, "✗ after ", element("code", {}, chars.slice(Math.max(0, completed.valid - 20), completed.valid).join("") || "the start"),
          ": ", element("s", { class: "cut" }, chars.slice(completed.valid, completed.valid + 20).join("")));
      }
      show(completed.completions, chars.slice(0, completed.valid).join(""));
    } catch (error) {
      if (mine === latest) replace(status, error.message);
      if (!(error instanceof ApiError)) throw error;
    }
  }

  function show(completions, valid) {
    found = completions.map((text) => ({ text, whole: valid + text }));
    active = -1;
    replace(list, found.map((each, i) => element("li", {
      role: "option", id: `completion-${i}`, "aria-selected": "false",
      mousedown: (event) => { event.preventDefault(); accept(i); },
    }, each.text.replaceAll(" ", "\u00a0"))));
    open(found.length > 0 && document.activeElement === input);
  }

  function open(shown) {
    list.hidden = !shown;
    input.setAttribute("aria-expanded", shown);
    if (!shown) input.removeAttribute("aria-activedescendant");
  }

  function highlight(next) {
    list.children[active]?.setAttribute("aria-selected", "false");
    active = (next + found.length) % found.length;
    list.children[active].setAttribute("aria-selected", "true");
    list.children[active].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", `completion-${active}`);
  }

  function accept(i) {
    input.value = found[i].whole;
    input.focus();
    check();
  }

  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") open(false);
    else if (list.hidden && event.key === "ArrowDown") check();
    else if (list.hidden || !found.length) return;
    else if (event.key === "ArrowDown") highlight(active + 1);
    else if (event.key === "ArrowUp") highlight(active <= 0 ? found.length - 1 : active - 1);
    else if (event.key === "Enter" && active >= 0) accept(active);
    else return;
    event.preventDefault();
  });
  input.addEventListener("input", debounced(120, check));
  input.addEventListener("focus", check);
  input.addEventListener("blur", () => open(false));

  const choices = domain.targets.length > 1 ? element("div", { class: "choices", role: "radiogroup", "aria-label": "Written as" },
    [...domain.targets].reverse().map((name) => element("label", {}, element("input", {
      type: "radio", name: "written", value: name, checked: name === target,
      change: () => {
        target = name;
        input.value = textOf(parse, target);
        check();
      },
    }), name === "canonical" ? "in words" : "as a program"))) : null;
  const form = element("form", {
    class: "correction", autocomplete: "off",
    submit: (event) => {
      event.preventDefault();
      if (submit.disabled) return toast("The correction is not well-formed yet.");
      send({ outcome: "corrected", [target]: input.value }, `Noted: ${input.value}`, target === "canonical" ? input.value : null);
    },
  }, choices, element("label", { for: "correction", class: "hidden" }, "Correction"),
  element("div", { class: "combobox" }, input, list), status,
  element("div", { class: "buttons" }, submit, button("Cancel", cancel)));
  input.value = textOf(parse, target);
  queueMicrotask(() => input.focus());
  return form;
}

function textOf(parse, target) {
  return (target === parse.target ? parse.output : target === "program" ? parse.program : "") ?? "";
}
