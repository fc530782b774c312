// What the console knows of the running system, each second anew.

import { useEffect, useRef, useState } from "../../vendor/preact/hooks.mjs";
import { call } from "../api.js";
import { useRepeated } from "../ui.js";
import { ask } from "./session.js";

const EVERY_MS = 1_000;
const SAMPLES_MAX = 300;

/** Sales, figures and processes. `samples` are those of one sale, as rates, oldest first. */
export function useLive(saleId) {
  const [sales, setSales] = useState(null);
  const [live, setLive] = useState(null);
  const [away, setAway] = useState(false);
  const samples = useRef({ saleId: null, list: [], last: null });
  const [again, setAgain] = useState(0);
  useRepeated(
    async (isOver) => {
      try {
        const [all, figures] = await Promise.all([call("GET", "/v1/sales"), ask("GET", "/v1/admin/live")]);
        if (isOver()) return Infinity;
        note(samples.current, saleId, figures);
        setSales(all.sales);
        setLive(figures);
        setAway(false);
      } catch {
        setAway(true);
      }
      return EVERY_MS;
    },
    [saleId, again],
  );
  return { sales, live, away, samples: samples.current.list, reload: () => setAgain((times) => times + 1) };
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
    });
    if (kept.list.length > SAMPLES_MAX) kept.list.shift();
  }
  kept.last = now;
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

/** What this server can do, by its own description: parts of the console stand or fall with it. */
export function useAbilities() {
  const [abilities, setAbilities] = useState(null);
  useRepeated(async () => {
    try {
      const { paths, components } = await call("GET", "/openapi.json", { cache: "default" });
      setAbilities({
        audit: "/v1/admin/audit" in paths,
        repeats: "repeat" in (components.schemas.Sale?.properties ?? {}),
      });
      return Infinity;
    } catch {
      return 2_000;
    }
  }, []);
  return abilities;
}
