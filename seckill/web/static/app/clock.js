// The server's time. A phone's own clock may be wrong or be changed while the page is open, so it decides nothing.

import { call, sleep } from "./api.js";

const SAMPLES = 4;
const AGAIN_EVERY_MS = 60_000;
const RETRY_MS = 1_000;

let offsetMs = null; // the server's time minus performance.now()

/** Of a few questions, the quickest answer is the nearest to the truth: it is off by half its way at most. */
async function sync() {
  let best = null;
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const asked = performance.now();
    const { server_time: time } = await call("GET", "/v1/time", { withinMs: 4_000 });
    const answered = performance.now();
    if (best === null || answered - asked < best.took) {
      best = { took: answered - asked, offset: Date.parse(time) - (asked + answered) / 2 };
    }
  }
  offsetMs = best.offset;
}

let syncing = null;

export function syncClock() {
  syncing ??= sync().finally(() => {
    syncing = null;
  });
  return syncing;
}

export async function keepClock() {
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) syncClock().catch(() => {});
  });
  for (;;) {
    try {
      await syncClock();
      await sleep(AGAIN_EVERY_MS);
    } catch {
      await sleep(RETRY_MS);
    }
  }
}

export const isClockSet = () => offsetMs !== null;

/** Before the first answer: the phone's time, which is good enough to show and not to act upon. */
export const nowMs = () => (offsetMs === null ? Date.now() : performance.now() + offsetMs);
