// The HTTP API: one way to ask, and errors in the server's own words.

import { words } from "./words.js";

const SILENT = "The server does not answer. Start it again with “modulekge serve”, then retry.";
const TOKEN = "modulekge-token";
const kept = new Map(); // what does not change while the server runs, by address

/** What the server refused, or that it is silent (status 0). */
export class ServerError extends Error {
  constructor(message, status = 400, field = null) {
    super(message);
    this.status = status;
    this.field = field; // the part of the request that is meant
  }
}

/** Keep the token for this tab; it goes with every request from now on. */
export function keepToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

/** Say whether a token was given in this tab. */
export function hasToken() {
  return sessionStorage.getItem(TOKEN) !== null;
}

/** Return what the server has under a path, with parameters. */
export function get(path, params, signal) {
  return call(address(path, params), { signal });
}

/** Return what the server has under a path, asked for once as long as the page is open. */
export function getOnce(path, params) {
  const url = address(path, params);
  if (!kept.has(url)) {
    kept.set(url, call(url, {}));
    kept.get(url).catch(() => kept.delete(url));
  }
  return kept.get(url);
}

/** Return the server's answer to a body of JSON. */
export function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return call(address(path), { method: "POST", headers, body: JSON.stringify(body), signal });
}

/** Return the path of something of a run. */
export function of(run, what = "") {
  return `runs/${encodeURIComponent(run.name)}${what && `/${what}`}`;
}

function address(path, params = {}) {
  const query = new URLSearchParams(params).toString();
  return `api/v1/${path}${query && `?${query}`}`;
}

/** Return what the server has under a path as a file of some kind. */
export async function fetchFile(path, kind) {
  const response = await fetch(address(path), { headers: withToken({ Accept: kind }) });
  if (!response.ok) throw new ServerError(`The server answered ${response.status}.`, response.status);
  return response.blob();
}

function withToken(headers) {
  const token = sessionStorage.getItem(TOKEN);
  return { ...headers, ...(token && { Authorization: `Bearer ${token}` }) };
}

async function call(url, options) {
  let response, body;
  try {
    response = await fetch(url, { ...options, headers: withToken(options.headers) });
    body = await response.text();
  } catch (error) {
    throw error.name === "AbortError" ? error : new ServerError(SILENT, 0);
  }
  const value = read(body);
  if (response.ok && value !== undefined) return value;
  const message = value?.error ?? `The server answered ${response.status}, without saying why.`;
  throw new ServerError(message, response.status, value?.field);
}

/** Labels are for people, who write no underscores; names stay as they are. */
function spaced(key, value) {
  if (key === "label") return words(value);
  return key === "labels" ? value.map(words) : value;
}

function read(body) {
  try {
    return JSON.parse(body, spaced);
  } catch {
    return undefined;
  }
}
