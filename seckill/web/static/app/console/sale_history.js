// What the charts show: what was kept, and what goes on now, in one line.

import { useEffect, useMemo, useState } from "../../vendor/preact/hooks.mjs";
import { nowMs } from "../clock.js";
import { useRepeated } from "../ui.js";
import { ask } from "./session.js";

const LIVE_EVERY_MS = 10_000; // what is newer is in the live samples
const RETRY_MS = 2_000;

export const LIVE_SPANS = { "5m": 300, "1h": 3_600 };

const rfc3339 = (seconds) => new Date(seconds * 1000).toISOString();

export const historyQuery = (fromS, toS) => `from=${rfc3339(fromS)}&to=${rfc3339(toS)}`;

/** Points as rates and levels, oldest first. The first of a round tells no rate: nothing is known before it. */
export function toSamples(points) {
  const last = new Map();
  const found = [];
  for (const point of points) {
    const atS = Date.parse(point.at) / 1000;
    const before = last.get(point.round);
    last.set(point.round, { ...point, atS });
    const seconds = before && atS - before.atS;
    // A gate that was rebuilt counts anew: that is no negative rate.
    const rate = (name) => (before && point[name] !== null && before[name] !== null ? Math.max(0, point[name] - before[name]) / seconds : null);
    const sample = {
      atS,
      accepted: rate("accepted_units"),
      persisted: rate("persisted_units"),
      refused: before ? Object.values(point.refused).reduce((sum, many) => sum + many, 0) / seconds : null,
      backlog: point.backlog,
      available: point.available,
      paid: point.paid_units,
      p99: point.system_p99_ms,
      waiting: point.waiting,
    };
    // At the edge of two rounds there is one point for each: the later one counts.
    if (found.at(-1)?.atS === atS) found.pop();
    found.push(sample);
  }
  return found;
}

/** `range`: {spanS} up to now, or {fromS, toS}. `samples`: of the last minutes, live. */
export function useHistory(saleId, range, samples) {
  const [kept, setKept] = useState({ samples: [], stepS: 1, loaded: false });
  useEffect(() => setKept({ samples: [], stepS: 1, loaded: false }), [saleId]);
  const { spanS, fromS, toS } = range;
  useRepeated(
    async (isOver) => {
      const now = nowMs() / 1000;
      const [from, to] = spanS ? [now - spanS, now + 1] : [fromS, toS];
      try {
        const answer = await ask("GET", `/v1/admin/sales/${saleId}/history?${historyQuery(from, to)}`);
        if (isOver()) return Infinity;
        setKept({ samples: toSamples(answer.points), stepS: answer.step_s, loaded: true });
      } catch {
        return RETRY_MS;
      }
      return spanS || toS > now ? LIVE_EVERY_MS : Infinity;
    },
    [saleId, spanS, fromS, toS],
  );
  const goesOn = spanS !== undefined || toS > nowMs() / 1000;
  const latest = samples.at(-1);
  const shown = useMemo(() => {
    const last = kept.samples.at(-1)?.atS ?? 0;
    const since = spanS ? nowMs() / 1000 - spanS : fromS;
    const before = kept.samples.filter((sample) => sample.atS >= since);
    return goesOn ? [...before, ...samples.filter((sample) => sample.atS > last && sample.atS >= since && (!toS || sample.atS < toS))] : before;
  }, [kept, latest, spanS, fromS, toS]);
  return { shown, stepS: kept.stepS, loaded: kept.loaded };
}
