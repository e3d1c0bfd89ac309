// Talks with the service: one way to ask, one kind of error, and a memory of answers that have not changed since.

const TOKEN = "candor-token";
const MOST_REMEMBERED = 60;
const remembered = new Map();

/** An answer that is none. `kind` is token, unreachable, busy, refused or failed. */
export class ServiceError extends Error {
  constructor(kind, what, hint = "", code = "") {
    super(what);
    this.kind = kind;
    this.hint = hint;
    this.code = code;
  }
}

/** Keeps the token until the tab is closed. */
export function keepToken(token) {
  sessionStorage.setItem(TOKEN, token);
  remembered.clear();
}

/** Says whether a token is kept. */
export function hasToken() {
  return sessionStorage.getItem(TOKEN) !== null;
}

/** Returns the answer to a question; what is null among the parameters is left out. */
export async function ask(path, parameters = {}, { signal, body } = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined);
  const query = given.length ? `?${new URLSearchParams(given)}` : "";
  const headers = { Accept: "application/json" };
  if (hasToken()) headers.Authorization = `Bearer ${sessionStorage.getItem(TOKEN)}`;
  if (body) headers["Content-Type"] = "application/json";
  const request = { method: body ? "POST" : "GET", headers, signal, body: body && JSON.stringify(body) };
  const response = await reach(`${path}${query}`, request);
  const content = await contentOf(response, signal);
  if (!response.ok) throw trouble(response, content?.error);
  if (content === null) throw new ServiceError("failed", "the service gave an answer that is not JSON");
  return content;
}

/** Returns the answer to a question about the past of a model, from memory if that version was asked before. */
export async function askOnce(path, parameters, { signal, body, model }) {
  const key = JSON.stringify([model.version, model.readings_changed, path, parameters, body]);
  if (remembered.has(key)) return remembered.get(key);
  const answer = await ask(path, parameters, { signal, body });
  remembered.set(key, answer);
  if (remembered.size > MOST_REMEMBERED) remembered.delete(remembered.keys().next().value);
  return answer;
}

async function reach(address, request) {
  try {
    return await fetch(address, request);
  } catch (error) {
    if (request.signal?.aborted) throw error;
    throw new ServiceError("unreachable", "the service cannot be reached", "see whether it runs, then try again");
  }
}

async function contentOf(response, signal) {
  try {
    return await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    return null;
  }
}

function trouble(response, told) {
  const what = told?.what ?? `the service answered with status ${response.status}`;
  const wait = response.headers.get("Retry-After");
  const hint = told?.hint || (wait ? `try again in ${wait} seconds` : "");
  if (response.status === 401) return new ServiceError("token", what, hint, told?.code);
  if (response.status === 429 || response.status === 503) return new ServiceError("busy", what, hint, told?.code);
  return new ServiceError(response.status < 500 ? "refused" : "failed", what, hint, told?.code);
}

/** Returns a function that gives a fresh signal and calls off whatever held the one before. */
export function newest() {
  let controller = null;
  return () => {
    controller?.abort();
    controller = new AbortController();
    return controller.signal;
  };
}
