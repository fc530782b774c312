// Talking to the API, and who is talking. Tokens live in sessionStorage and in headers, never in an address.

import { base, meta } from "./facts.js";

export { base, meta };

const TOKEN = "seckill.token";
const NAME = "seckill.name";
const ANSWER_WITHIN_MS = 15_000;

/** The API said no, and why: `code` is one of the documented ones. */
export class Refused extends Error {
  constructor(status, problem, retryAfterMs) {
    super(problem.detail ?? `HTTP ${status}`);
    this.status = status;
    this.code = problem.code ?? `http_${status}`;
    this.problem = problem;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Nobody answered, so nothing is known. */
export class Offline extends Error {}

/** A shop hands its token over as #token=…, which no server and no log ever sees. It leaves the address at once. If
 * nobody is signed in, it signs in; otherwise it is returned, to be tried first. */
export function takeTokenFromAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token === null) return null;
  history.replaceState(null, "", location.pathname + location.search);
  const [now, other] = [whoami(), holderOf(token)];
  if (now !== null) return token === now.token ? null : token;
  if (other !== null) signIn(token, other.name);
  return null;
}

/** Anybody can make such a link, so it replaces nobody before the server has accepted it, and no other person at all.
 * Returns whom it would sign in instead, for them to decide; null: nobody else. Throws Refused or Offline. */
export async function tryToken(token) {
  await call("GET", "/v1/orders?limit=1", { token });
  const [now, other] = [whoami(), holderOf(token)];
  if (now !== null && now.user !== other.user) return other;
  signIn(token, now?.name ?? other.name);
  return null;
}

export function signIn(token, name) {
  sessionStorage.setItem(TOKEN, token);
  sessionStorage.setItem(NAME, name);
}

export function signOut() {
  sessionStorage.removeItem(TOKEN);
  sessionStorage.removeItem(NAME);
}

/** Who is signed in, for showing only: the server checks the token, and goes by its own clock. Null when nobody is. */
export function whoami() {
  const token = sessionStorage.getItem(TOKEN);
  const holder = token === null ? null : holderOf(token);
  return holder && { ...holder, name: sessionStorage.getItem(NAME) ?? holder.name };
}

/** Whom a token is of, as it says itself. */
export function holderOf(token) {
  try {
    const { sub, [meta("groups")]: groups } = JSON.parse(decoded(token.split(".")[1]));
    return typeof sub === "string" ? { token, user: sub, name: sub, groups: [groups ?? []].flat() } : null;
  } catch {
    return null;
  }
}

function decoded(part) {
  const binary = atob(part.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder().decode(Uint8Array.from(binary, (char) => char.charCodeAt(0)));
}

// Chromium has "no-store" forget as well that another origin's page may ask, and asks about that each time anew. What
// must not be kept says so itself.
const uncached = () => (isEmbedded() ? "default" : "no-store");

/** The answer's content. `file` is sent as it is, instead of a body. `session`: with the cookie of an operator who has
 * signed in. `more`: headers. Throws Refused or Offline. */
export async function call(method, path, { token, session = false, more, body, file, fileType, key, pass, withinMs = ANSWER_WITHIN_MS, cache = uncached(), keepalive = false } = {}) {
  const headers = { ...more };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (key) headers["Idempotency-Key"] = key;
  if (pass) headers["Seckill-Pass"] = pass;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (file !== undefined) headers["Content-Type"] = fileType;
  let response, text;
  try {
    response = await fetch(base + path, {
      method,
      headers,
      cache,
      keepalive,
      credentials: session ? "same-origin" : "omit",
      body: body === undefined ? file : JSON.stringify(body),
      signal: AbortSignal.timeout(withinMs),
    });
    text = await response.text();
  } catch (error) {
    throw new Offline(error.message);
  }
  let content = {};
  try {
    if (response.status !== 204) content = JSON.parse(text);
  } catch {
    if (response.ok) throw new Offline("The answer is not JSON.");
  }
  if (!response.ok) throw new Refused(response.status, content, retryAfterMs(response));
  return content;
}

function retryAfterMs(response) {
  const seconds = Number(response.headers.get("Retry-After"));
  return Number.isFinite(seconds) ? seconds * 1000 : 0;
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Doubles with each try and is never the same for everybody. */
export function backoffMs(tries, { first = 300, most = 5_000 } = {}) {
  const longest = Math.min(most, first * 2 ** tries);
  return longest * (0.5 + Math.random() / 2);
}

/** In a page of the shop: there are no pages of ours around it, and the shop signs people in. */
export const isEmbedded = () => meta("embedded") === "on";

/** Here in the demo, else where the shop says. Where it does not say, people come from there with a token. */
export const canSignIn = () => isEmbedded() || meta("demo") === "on" || meta("sign-in") !== "";

/** The shop signs people in and sends them back with #token=…, or to its own page, which has a token for us. */
export function goToShop() {
  const target = new URL(meta("sign-in"));
  target.searchParams.set("return", location.origin + location.pathname + (isEmbedded() ? location.search : ""));
  location.assign(target);
}
