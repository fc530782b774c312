// Before the start: so that nobody has to keep the time in mind.

import { useEffect, useState } from "../vendor/preact/hooks.mjs";
import { base, isEmbedded } from "./api.js";
import { nowMs } from "./clock.js";
import { t, time } from "./i18n.js";
import { html } from "./ui.js";

const REMIND_BEFORE_MS = 2 * 60_000; // a browser wakes a tab in the background once a minute
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Not in a page of somebody else, whose people would be asked in its name. */
const canRemind = () => !isEmbedded() && globalThis.isSecureContext && "Notification" in globalThis;

function notify(sale) {
  try {
    const told = new Notification(sale.title, { body: t("remind_body", { time: time(Date.parse(sale.begins_at), nowMs()) }), tag: sale.id });
    told.onclick = () => window.focus();
  } catch {
    // A browser that tells its people nothing without a service worker: the calendar is there for them.
  }
}

/** Kept for this tab, so that it outlives a reload. */
function useReminder(sale) {
  const place = `seckill.remind.${sale.id}.${sale.round}`;
  const [state, setState] = useState(() => (canRemind() && sessionStorage.getItem(place) ? "on" : "off"));
  useEffect(() => {
    const leftMs = Date.parse(sale.begins_at) - nowMs() - REMIND_BEFORE_MS;
    if (state !== "on" || leftMs < 0 || leftMs > TIMER_MS_MAX) return undefined;
    const timer = setTimeout(() => notify(sale), leftMs);
    return () => clearTimeout(timer);
  }, [state, sale.id, sale.begins_at]);
  const ask = async () => {
    const granted = (await Notification.requestPermission()) === "granted";
    if (granted) sessionStorage.setItem(place, "on");
    setState(granted ? "on" : "denied");
  };
  return [state, ask];
}

export function Ahead({ sale, now }) {
  const [state, ask] = useReminder(sale);
  const isSoon = Date.parse(sale.begins_at) - now < REMIND_BEFORE_MS;
  if (isSoon) return null;
  return html`<div class="ahead">
    <p class="ahead-ways">
      <a class="link" data-action="calendar" href=${`${base}/sales/${sale.id}/calendar.ics`}>${t("add_to_calendar")}</a>
      ${canRemind() && state === "off" && html`<button type="button" class="link" data-action="remind" onClick=${ask}>${t("remind_me")}</button>`}
    </p>
    <p class="facts" role="status" data-reminder=${state}>${state === "on" ? t("remind_on") : state === "denied" ? t("remind_denied") : ""}</p>
  </div>`;
}
