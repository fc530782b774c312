// A press of the button. It has one Idempotency-Key from the press to the answer, over every repeat, reload and tab,
// so it becomes one order or none.

import { Offline, Refused, backoffMs, call, sleep } from "./api.js";

// Nothing was decided, or nobody knows what: to ask again with the same key is right.
export const isTrouble = (error) =>
  error instanceof Offline || (error instanceof Refused && (error.code === "rate_limited" || error.status >= 500));

// A pass that was not accepted may have ended a moment ago. Another will do, or none.
const PASSES_MAX = 3;

const placeOf = (user, sale) => `seckill.press.${user}.${sale.id}.${sale.round}`;

/** The press that has not been answered yet, or null. */
export function pressOf(user, sale) {
  try {
    return JSON.parse(localStorage.getItem(placeOf(user, sale)));
  } catch {
    return null;
  }
}

/** Kept before anything is sent. Another tab's press that is still without an answer is the same press. */
export function press(user, sale, quantity, itemId) {
  const pressed = pressOf(user, sale) ?? { key: newKey(), quantity, item_id: itemId ?? undefined };
  localStorage.setItem(placeOf(user, sale), JSON.stringify(pressed));
  return pressed;
}

export function answered(user, sale) {
  localStorage.removeItem(placeOf(user, sale));
}

/** Not crypto.randomUUID, which pages without TLS do not have. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Before a page of another origin sends a claim, the browser asks whether it may. Asked ahead of time, that is settled
 * when the button is pressed. Nothing depends on it. */
export const askAhead = (sale, token) =>
  call("OPTIONS", `/v1/sales/${sale.id}/orders`, { token, key: newKey(), body: {} }).catch(() => {});

/**
 * Asks until there is an answer. `onTrouble` is told of every try without one. Returns what was accepted, or null when
 * `isWanted` says that nobody wants to know any more. Throws Refused: a decision, and this press is over, unless
 * `isPassing` knows that it will soon be another.
 */
export async function claim(sale, pressed, token, { onTrouble, isWanted, pass, isPassing = () => false }) {
  for (let tries = 0; isWanted(); tries += 1) {
    try {
      return await call("POST", `/v1/sales/${sale.id}/orders`, {
        token,
        key: pressed.key,
        pass: await pass.get(),
        body: { quantity: pressed.quantity, item_id: pressed.item_id },
        withinMs: 8_000,
      });
    } catch (error) {
      const again = error.code === "pass_required" && tries < PASSES_MAX;
      if (again) pass.renew();
      if (!again && !isTrouble(error) && !isPassing(error)) throw error;
      onTrouble(error, tries + 1);
      await sleep(Math.max(error.retryAfterMs ?? 0, 0) + backoffMs(tries));
    }
  }
  return null;
}

/** Paying and cancelling are harmless to repeat, so a lost answer is asked for again. */
export async function act(order, verb, token, isWanted) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await call("POST", `/v1/orders/${order.order_id}/${verb}`, { token });
    } catch (error) {
      const again = isTrouble(error) || (error instanceof Refused && error.code === "still_queued");
      if (!again || tries >= 8 || !isWanted()) throw error;
      await sleep(backoffMs(tries));
    }
  }
}
