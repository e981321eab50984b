// Requests to the API of the server that this page comes from. Addresses are relative: it may be mounted anywhere.

import { byId } from "./dom.js";

const KEY = "fewparse-api-key";
export const BASE = new URL(".", document.baseURI).href;

export function hasKey() {
  return sessionStorage.getItem(KEY) !== null;
}

export class ApiError extends Error {
  constructor(error) {
    super(error.message);
    this.code = error.code;
    this.hint = error.hint;
  }
}

async function send(path, body, signal) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  const key = sessionStorage.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key}`;
  const init = { method: body === undefined ? "GET" : "POST", headers, signal, credentials: "omit" };
  if (body !== undefined) init.body = JSON.stringify(body);
  let response;
  try {
    response = await fetch(new URL(path, BASE), init);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError({ code: "unreachable", message: "The server does not respond.", hint: "Is it still running?" });
  }
  if (response.status === 401) {
    await askForKey(key !== null);
    return send(path, body, signal);
  }
  if (!response.ok) throw new ApiError(await errorOf(response));
  return response;
}

async function errorOf(response) {
  try {
    return (await response.json()).error;
  } catch {
    return { code: "unknown", message: `The server responded with status ${response.status}.`, hint: null };
  }
}

let asking = null;
function askForKey(again) {
  byId("key-wrong").hidden = !again;
  asking ??= new Promise((resolve) => {
    const dialog = byId("key-dialog");
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    byId("key-form").addEventListener("submit", () => {
      sessionStorage.setItem(KEY, byId("key").value);
      byId("key").value = "";
      asking = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

export async function get(path) {
  return (await send(path)).json();
}

export async function post(path, body, signal) {
  return (await send(path, body, signal)).json();
}

// Yield the events of a parse as [name, data].
export async function* parseEvents(body, signal) {
  const response = await send("v1/parse/stream", body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const messages = text.split("\n\n");
    text = messages.pop();
    for (const message of messages) {
      const found = /^event: (\w+)\ndata: (.*)$/s.exec(message);
      if (found) yield [found[1], JSON.parse(found[2])];
    }
  }
}
