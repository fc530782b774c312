// Hearing of an order's changes: by WebSocket, else as an event stream, else by asking again and again. Whatever does
// not work is followed by the next, whatever worked is tried again when it breaks.

import { Refused, backoffMs, base, call, sleep } from "./api.js";

const FIRST_WORD_WITHIN_MS = 3_000;
const SILENCE_MS_MAX = 45_000; // the server says something every 15 to 20 s, if only that it is there
const POLL_S = 25;
const BAD_TOKEN = 4401;

/** Only these move on by themselves while somebody looks. */
export const goesOn = (state) => state === "queued" || state === "unpaid";

const RANKS = { queued: 0, unpaid: 1, paid: 2, cancelled: 2, expired: 2, failed: 2, refunded: 3 };
export const isNewer = (state, known) => known === undefined || RANKS[state] > RANKS[known];

// An order that was over before this is old news.
const LATE_MS_MAX = 15 * 60_000;

/** Over without having been paid. All that can still happen is that money comes late: it pays another order, or goes back. */
export const mayBePaidLate = (order, nowMs) =>
  ["cancelled", "expired", "failed"].includes(order.state) &&
  !order.replaced_by &&
  order.price_cents > 0 &&
  Boolean(order.closed_at) &&
  nowMs < Date.parse(order.closed_at) + LATE_MS_MAX;

/** Waits for that, by long poll, while somebody looks. Returns a function that ends it. */
export function watchLate(order, token, { onOrder, nowMs }) {
  let over = false;
  const run = async () => {
    for (let known = order; !over && mayBePaidLate(known, nowMs()); ) {
      try {
        const wait = document.hidden ? "" : `?wait=${POLL_S}&seen=${known.state}`;
        if (document.hidden) await sleep(POLL_S * 1000);
        known = { ...known, ...(await call("GET", `/v1/orders/${order.order_id}${wait}`, { token, withinMs: (POLL_S + 10) * 1000 })) };
        if (!over) onOrder(known);
      } catch (error) {
        if (error instanceof Refused && (error.status === 401 || error.status === 404)) return;
        await sleep(backoffMs(4));
      }
    }
  };
  run();
  return () => {
    over = true;
  };
}

class Denied extends Error {}
class Unknown extends Error {}

/** Calls `onOrder` now and at each change until the order is over. Returns a function that ends it. */
export function watch(orderId, token, { onOrder, onVia = () => {}, onDenied = () => {}, onUnknown = () => {} }) {
  const watching = { orderId, token, state: undefined, heard: 0, ended: new AbortController() };
  const { signal } = watching.ended;
  watching.tell = (order, via) => {
    if (signal.aborted) return;
    watching.heard += 1;
    onVia(via);
    if (isNewer(order.state, watching.state)) {
      watching.state = order.state;
      onOrder(order);
    }
    if (!goesOn(order.state)) watching.ended.abort();
  };
  run(watching, onVia).catch((error) => {
    if (signal.aborted) return;
    if (error instanceof Denied) onDenied();
    else if (error instanceof Unknown) onUnknown();
    else throw error;
  });
  return () => watching.ended.abort();
}

const WAYS = [bySocket, byStream, byPolling];

async function run(watching, onVia) {
  const { signal } = watching.ended;
  let way = 0;
  let failures = 0;
  while (!signal.aborted) {
    watching.heard = 0;
    try {
      await WAYS[way](watching);
    } catch (error) {
      if (error instanceof Denied || error instanceof Unknown) throw error;
    }
    if (signal.aborted) return;
    onVia(null);
    if (watching.heard > 0) {
      failures = 0;
    } else {
      way = (way + 1) % WAYS.length;
      failures += 1;
    }
    await sleep(backoffMs(Math.max(0, failures - 1), { first: 200, most: 3_000 }));
  }
}

function bySocket(watching) {
  const { signal } = watching.ended;
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(new URL(`${base}/v1/ws`, location.href).href.replace(/^http/, "ws"));
    const end = () => socket.close();
    const silent = setTimeout(end, FIRST_WORD_WITHIN_MS);
    signal.addEventListener("abort", end, { once: true });
    socket.onopen = () => {
      socket.send(JSON.stringify({ token: watching.token }));
      socket.send(JSON.stringify({ watch: watching.orderId }));
    };
    socket.onmessage = (message) => {
      clearTimeout(silent);
      const content = JSON.parse(message.data);
      if (content.error === "not_found") reject(new Unknown());
      else if (content.error) end();
      else watching.tell(content, "ws");
    };
    const over = ({ code }) => {
      clearTimeout(silent);
      signal.removeEventListener("abort", end);
      if (code === BAD_TOKEN) reject(new Denied());
      else resolve();
    };
    socket.onclose = over;
    socket.onerror = over; // where a page's policy forbids it, nothing else follows
  });
}

/** Not an EventSource, which cannot send the token in a header. */
async function byStream(watching) {
  const ended = new AbortController();
  watching.ended.signal.addEventListener("abort", () => ended.abort(), { once: true });
  let silent = setTimeout(() => ended.abort(), FIRST_WORD_WITHIN_MS);
  try {
    const response = await fetch(`${base}/v1/orders/${watching.orderId}/events`, {
      headers: { Authorization: `Bearer ${watching.token}`, Accept: "text/event-stream" },
      cache: "no-store",
      credentials: "omit",
      signal: ended.signal,
    });
    check(response.status);
    if (!response.ok) return;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(silent);
      silent = setTimeout(() => ended.abort(), SILENCE_MS_MAX);
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event);
        if (data) watching.tell(JSON.parse(data[1]), "sse");
      }
    }
  } finally {
    clearTimeout(silent);
  }
}

async function byPolling(watching) {
  const { orderId, token, ended } = watching;
  while (!ended.signal.aborted) {
    const wait = watching.state === undefined || watching.heard === 0 ? "" : `?wait=${POLL_S}&seen=${watching.state}`;
    try {
      const order = await call("GET", `/v1/orders/${orderId}${wait}`, { token, withinMs: (POLL_S + 10) * 1000 });
      watching.tell(order, "poll");
    } catch (error) {
      if (error instanceof Refused) check(error.status);
      throw error;
    }
  }
}

function check(status) {
  if (status === 401) throw new Denied();
  if (status === 404) throw new Unknown();
}
