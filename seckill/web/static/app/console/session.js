// The admin key, for this tab only, or the session of an operator who has signed in with a provider, and requests to the
// API with it. A session is in a cookie that no script can read, so all that is known here is that there is one.

import { Offline, Refused, base, call, meta } from "../api.js";
import { t } from "../i18n.js";
import { said } from "./sentences.js";

const KEY = "seckill.admin-key";
const SESSION = "session"; // in the place of a key, which is longer
const BACK_TO = "seckill.back-to";
const KEPT_FOR_SAVING_MS = 60_000;
const listeners = new Set();
let denial = null; // the answer that said so
let operator = null; // whose key it is: {name, role}, once that is known
const RANKS = ["viewer", "operator", "admin"];

export const currentKey = () => sessionStorage.getItem(KEY);

/** Whether the operator has signed in with a provider, and not with a key. */
export const hasSession = () => currentKey() === SESSION;

// The cookie counts for nothing without this header.
const proof = (key) => (key === SESSION ? { session: true, more: { "Seckill-Console": "1" } } : { token: key });

/** What the provider is called where operators can sign in; empty: they have keys only. */
export const provider = () => meta("oidc");

/** Leaves for the provider. What was shown is shown again afterwards. */
export function goToProvider() {
  sessionStorage.removeItem(KEY);
  sessionStorage.setItem(BACK_TO, location.hash);
  location.assign(`${base}/console/sign-in`);
}

/** After the way back from there, or in another tab: is there a session? Throws Offline. */
export async function resume() {
  try {
    await enter(SESSION);
  } catch (error) {
    if (error instanceof Refused) return;
    throw error;
  }
  const hash = sessionStorage.getItem(BACK_TO);
  sessionStorage.removeItem(BACK_TO);
  if (hash && location.hash === "") location.hash = hash;
}

/** The key was good once and is no longer: it has to be typed in again, and nothing else is lost. */
export const isKeyDenied = () => denial !== null;

export const onSession = (listener) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

const tell = () => {
  for (const listener of listeners) listener();
};

/** Who is signed in. null: not known yet. */
export const currentOperator = () => operator;

/** Whether there is any use in offering what needs this role. The server decides. */
export const may = (role) => operator !== null && RANKS.indexOf(operator.role) >= RANKS.indexOf(role);

/** Signs in again after the page was reloaded, with a key that is still there. Throws what `ask` throws. */
export async function recall() {
  operator = await ask("GET", "/v1/admin/me");
  tell();
}

export async function enter(key) {
  operator = await call("GET", "/v1/admin/me", proof(key));
  sessionStorage.setItem(KEY, key);
  denial = null;
  tell();
}

export function leave() {
  if (hasSession()) call("POST", "/console/sign-out", { ...proof(SESSION), keepalive: true }).catch(() => {});
  sessionStorage.removeItem(KEY);
  denial = null;
  operator = null;
  tell();
}

/** The key opens nothing. One whose role is too small for something is still good for the rest. */
export const isDenied = (error) =>
  error instanceof Refused && (error.status === 401 || (error.status === 403 && error.problem?.code !== "role_too_small"));

/** Throws what `call` throws. Nothing is asked with a key that was denied. `reason`: why something is changed. */
export async function ask(method, path, body, { reason, ...options } = {}) {
  if (denial !== null) throw denial;
  const key = currentKey();
  const who = proof(key);
  const more = reason ? { ...who.more, "Seckill-Reason": encodeURIComponent(reason) } : who.more;
  try {
    return await call(method, path, { ...who, more, body, ...options });
  } catch (error) {
    if (isDenied(error) && key === currentKey()) {
      denial = error;
      tell();
    }
    throw error;
  }
}

/** Saves what is there as a file. However long it is: a browser does not keep it in memory. Throws what `ask` throws. */
export async function download(path, name) {
  let content;
  try {
    const session = hasSession();
    const headers = session ? { "Seckill-Console": "1" } : { Authorization: `Bearer ${currentKey()}` };
    const response = await fetch(base + path, { headers, credentials: session ? "same-origin" : "omit", cache: "no-store" });
    if (!response.ok) throw new Refused(response.status, await response.json(), 0);
    content = await response.blob();
  } catch (error) {
    throw error instanceof Refused ? error : new Offline(error.message);
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_FOR_SAVING_MS);
}

/** What to say to the operator. */
export function told(error) {
  if (isDenied(error)) return t("admin_key_wrong");
  if (!error.problem) return t("offline");
  const { errors = [] } = error.problem;
  return errors.length > 0 ? errors.map(({ field, message }) => `${field}: ${said(message)}`).join(" ") : said(error.message);
}
