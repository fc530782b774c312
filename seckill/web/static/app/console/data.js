// What the console knows of the running system, read every second.

import { useEffect, useRef, useState } from "../../vendor/preact/hooks.mjs";
import { useRepeated } from "../ui.js";
import { ask, isDenied } from "./session.js";

const EVERY_MS = 1_000;
const SAMPLES_MAX = 300;

/** Sales, figures and processes. `samples` are those of one sale, as rates, oldest first. */
export function useLive(saleId) {
  const [listed, setListed] = useState(null);
  const [past, setPast] = useState({ sales: [], older: undefined });
  const [live, setLive] = useState(null);
  const [away, setAway] = useState(false);
  const samples = useRef({ saleId: null, list: [], last: null });
  const rates = useRef({ now: new Map(), last: new Map() });
  const [again, setAgain] = useState(0);
  useRepeated(
    async (isOver) => {
      try {
        const [all, figures] = await Promise.all([ask("GET", "/v1/sales"), ask("GET", "/v1/admin/live")]);
        const wanted = await missing(saleId, all.sales);
        if (isOver()) return Infinity;
        note(samples.current, saleId, figures);
        noteRates(rates.current, figures);
        setListed({ ...all, sales: [...wanted, ...all.sales] });
        setLive(figures);
        setAway(false);
      } catch (error) {
        setAway(!isDenied(error));
      }
      return EVERY_MS;
    },
    [saleId, again],
  );
  const older = past.older === undefined ? listed?.older : past.older;
  const showOlder = async () => {
    const earlier = await ask("GET", `/v1/sales?before=${encodeURIComponent(older)}`).catch(() => null);
    if (earlier !== null) setPast({ sales: [...earlier.sales, ...past.sales], older: earlier.older });
  };
  const known = new Set(listed?.sales.map((sale) => sale.id));
  return {
    sales: listed && [...past.sales.filter((sale) => !known.has(sale.id)), ...listed.sales],
    live,
    away,
    samples: samples.current.list,
    rates: rates.current.now,
    reload: () => setAgain((times) => times + 1),
    showOlder: older ? showOlder : null,
  };
}

/** A sale that was over so long ago that it is not in the list. */
async function missing(saleId, sales) {
  if (saleId === null || sales.some((sale) => sale.id === saleId)) return [];
  try {
    return [await ask("GET", `/v1/sales/${encodeURIComponent(saleId)}`)];
  } catch (error) {
    if (error.status === 404) return [];
    throw error;
  }
}

function note(kept, saleId, figures) {
  if (kept.saleId !== saleId) Object.assign(kept, { saleId, list: [], last: null });
  const sale = figures.sales.find((one) => one.sale_id === saleId);
  if (sale === undefined) return;
  const now = {
    atS: Date.parse(figures.server_time) / 1000,
    accepted: sale.accepted_units ?? 0,
    persisted: sale.persisted_units,
    refused: Object.values(sale.refused).reduce((sum, many) => sum + many, 0),
  };
  if (kept.last !== null && now.atS > kept.last.atS) {
    const seconds = now.atS - kept.last.atS;
    // A process that went away takes its counts with it: that is no negative rate.
    const rate = (name) => Math.max(0, now[name] - kept.last[name]) / seconds;
    kept.list.push({
      atS: now.atS,
      accepted: rate("accepted"),
      persisted: rate("persisted"),
      refused: rate("refused"),
      backlog: sale.backlog,
      available: sale.available,
      p99: figures.answers.p99_ms,
    });
    if (kept.list.length > SAMPLES_MAX) kept.list.shift();
  }
  kept.last = now;
}

/** Units that were accepted in a second, of every sale that is on. */
function noteRates(kept, figures) {
  const atS = Date.parse(figures.server_time) / 1000;
  const last = new Map(figures.sales.map((sale) => [sale.sale_id, { atS, round: sale.round, accepted: sale.accepted_units ?? 0 }]));
  kept.now = new Map(
    [...last].map(([saleId, { round, accepted }]) => {
      const before = kept.last.get(saleId);
      const seconds = before?.round === round ? atS - before.atS : 0;
      return [saleId, seconds > 0 ? Math.max(0, accepted - before.accepted) / seconds : 0];
    }),
  );
  kept.last = last;
}

/** One address, asked again so often. */
export function usePolled(path, everyMs, fallback = null) {
  const [content, setContent] = useState(fallback);
  const [problem, setProblem] = useState(null);
  const [again, setAgain] = useState(0);
  useEffect(() => {
    setContent(fallback);
    setProblem(null);
  }, [path]);
  useRepeated(
    async (isOver) => {
      if (path === null) return Infinity;
      try {
        const found = await ask("GET", path);
        if (isOver()) return Infinity;
        setContent(found);
        setProblem(null);
      } catch (error) {
        if (!isOver()) setProblem(error);
      }
      return everyMs;
    },
    [path, everyMs, again],
  );
  return [content, problem, () => setAgain((times) => times + 1)];
}
