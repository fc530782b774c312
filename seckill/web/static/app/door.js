// Most sales are for everybody who presses: what the others need is loaded for them, so that it costs nobody else.

import { useEffect, useState } from "../vendor/preact/hooks.mjs";
import { backoffMs, call, meta, sleep } from "./api.js";
import { nowMs } from "./clock.js";
import { loadDoor } from "./facts.js";
import { addTexts, roundTime, t } from "./i18n.js";
import { html } from "./ui.js";

let loading = null;

async function load() {
  for (let tries = 0; ; tries += 1) {
    const parts = await loadDoor().catch(() => null);
    if (parts !== null) {
      addTexts(parts.STRINGS);
      return parts.make({ html, t, roundTime, nowMs, call, sleep, backoffMs, script: meta("check-script") });
    }
    await sleep(backoffMs(tries));
  }
}

export const getDoor = () => (loading ??= load());

export const needsPass = ({ pass = "none" }) => pass !== "none";

/** What the sale needs of it; null: nothing, or it is not here yet. */
export function useDoor(sale) {
  const [door, setDoor] = useState(null);
  const isNeeded = sale !== null && Boolean(needsPass(sale) || sale.audience || sale.limit_by);
  useEffect(() => {
    if (isNeeded) getDoor().then(setDoor);
  }, [isNeeded]);
  return door;
}
