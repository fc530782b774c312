// The admin key, for this tab only, and asking the API with it.

import { Refused, call } from "../api.js";

const KEY = "seckill.admin-key";
const listeners = new Set();

export const currentKey = () => sessionStorage.getItem(KEY);

export const onSession = (listener) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

export function enter(key) {
  sessionStorage.setItem(KEY, key);
  for (const listener of listeners) listener("");
}

/** `why` is told where the key is typed in. */
export function leave(why = "") {
  sessionStorage.removeItem(KEY);
  for (const listener of listeners) listener(why);
}

export const isDenied = (error) => error instanceof Refused && (error.status === 401 || error.status === 403);

/** Throws what `call` throws. A key that is no longer good leads back to where it is typed in. */
export async function ask(method, path, body) {
  try {
    return await call(method, path, { token: currentKey(), body });
  } catch (error) {
    if (isDenied(error)) leave("denied");
    throw error;
  }
}
