"use strict";
// Elements, text and data files. All text of the data becomes text nodes, never markup.

const fewparseData = {}; // the files in data/ put their values here, by name
const loading = new Map();

// Control characters, and bidirectional controls, which reorder what a reader sees.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

function visible(text) {
  return String(text).replace(CONTROLS, (char) => {
    const code = char.charCodeAt(0).toString(16);
    return code.length > 2 ? "\\u" + code.padStart(4, "0") : "\\x" + code.padStart(2, "0");
  });
}

function oneLine(text) {
  return visible(text).replaceAll("\n", "\u21b5");
}

// Return a new element. A function as an attribute listens to the event of that name; false omits an attribute.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null).map(asNode));
  return made;
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(visible(child));
}

function byId(id) {
  return document.getElementById(id);
}

// Load a file of data by a script element, which file:// permits, unlike fetch; return a promise of its value.
function load(name) {
  if (!loading.has(name)) {
    loading.set(name, new Promise((resolve, reject) => {
      const failed = () => reject(new Error(`data/${name}.js cannot be loaded. Is the folder of the report complete?`));
      const loaded = () => (name in fewparseData ? resolve(fewparseData[name]) : failed());
      document.head.append(element("script", { src: `data/${name}.js`, load: loaded, error: failed }));
    }));
  }
  return loading.get(name);
}

// Append rows to a parent, `step` at a time, with a button for the next ones in `after`.
function appendInSteps(parent, after, rows, step, render) {
  let shown = 0;
  const more = element("button", { type: "button", class: "more", click: next });
  function next() {
    parent.append(...rows.slice(shown, shown + step).map(render));
    shown = Math.min(shown + step, rows.length);
    more.textContent = `Show ${Math.min(step, rows.length - shown)} more of ${rows.length}`;
    if (shown >= rows.length) more.remove();
  }
  if (rows.length > step) after.append(more);
  next();
}

function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
