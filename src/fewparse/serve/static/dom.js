// Elements and text. All text of the server becomes text nodes, never markup.

// Control characters, and bidirectional controls, which reorder what a reader sees.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

export function visible(text) {
  return String(text).replace(CONTROLS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// Return a new element. A function as an attribute listens to the event of that name; false omits an attribute.
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== false && value !== null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...nodes(children));
  return made;
}

export function nodes(children) {
  return children.flat(3).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(visible(child))));
}

export function byId(id) {
  return document.getElementById(id);
}

export function replace(parent, ...children) {
  parent.replaceChildren(...nodes(children));
}

export function options(select, values, chosen) {
  replace(select, values.map(([value, label]) => element("option", { value, selected: value === chosen }, label)));
}

export function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

export function button(label, action, style = "") {
  return element("button", { type: "button", class: style, click: action }, label);
}

// Return a function that calls another after a pause without calls.
export function debounced(milliseconds, action) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), milliseconds);
  };
}

let toastTimer = 0;
export function toast(text) {
  const shown = byId("toast");
  replace(shown, text);
  shown.classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => shown.classList.remove("shown"), 3000);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied");
  } catch {
    toast("The browser does not allow copying here");
  }
}
