// The admin key, for this tab only, and asking the API with it.

import { Offline, Refused, base, call } from "../api.js";
import { t } from "../i18n.js";
import { said } from "./sentences.js";

const KEY = "seckill.admin-key";
const KEPT_FOR_SAVING_MS = 60_000;
const listeners = new Set();
let denial = null; // the answer that said so
let operator = null; // whose key it is: {name, role}, once that is known
const RANKS = ["viewer", "operator", "admin"];

export const currentKey = () => sessionStorage.getItem(KEY);

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

/** After the page was loaded anew, with a key that is still there. Throws what `ask` throws. */
export async function recall() {
  operator = await ask("GET", "/v1/admin/me");
  tell();
}

export async function enter(key) {
  operator = await call("GET", "/v1/admin/me", { token: key });
  sessionStorage.setItem(KEY, key);
  denial = null;
  tell();
}

export function leave() {
  sessionStorage.removeItem(KEY);
  denial = null;
  operator = null;
  tell();
}

/** The key opens nothing. One whose role is too small for something is still good for the rest. */
export const isDenied = (error) =>
  error instanceof Refused && (error.status === 401 || (error.status === 403 && error.problem?.code !== "role_too_small"));

/** Throws what `call` throws. Nothing is asked with a key that was denied. */
export async function ask(method, path, body, options = {}) {
  if (denial !== null) throw denial;
  const key = currentKey();
  try {
    return await call(method, path, { token: key, body, ...options });
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
    const response = await fetch(base + path, { headers: { Authorization: `Bearer ${currentKey()}` }, credentials: "omit", cache: "no-store" });
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
