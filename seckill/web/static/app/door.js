// Most sales are for everybody who presses: what the others need is loaded for them, so that it costs nobody else.

import { useEffect, useState } from "../vendor/preact/hooks.mjs";
import { backoffMs, call, meta, sleep } from "./api.js";
import { nowMs } from "./clock.js";
import { roundTime, t } from "./i18n.js";
import { part } from "./lazily.js";
import { html } from "./ui.js";

let loading = null;

export const getDoor = () => (loading ??= part("door", { html, t, roundTime, nowMs, call, sleep, backoffMs, script: meta("check-script") }));

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
