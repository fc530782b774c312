// A sale that comes again, in words and in times.

import { useEffect, useState } from "../../vendor/preact/hooks.mjs";
import { clock, counted, dayAndTime, enumerated, roughDuration, t, unspaced, weekday, zone } from "../i18n.js";
import { html } from "../ui.js";
import { ask } from "./session.js";

const TYPING_MS = 400;
const DAYS = { SUN: 0, MON: 1, TUE: 2, WED: 3, THU: 4, FRI: 5, SAT: 6, 7: 0 };
const two = (text) => text.padStart(2, "0");

/** What people would say; cron that is not simple stays cron. `firstMs` is any beginning of a daily sale. */
export function inWords(repeat, timezone, firstMs) {
  if (repeat === "daily") return t("every_day", { time: Number.isNaN(firstMs) ? "" : clock(firstMs, timezone), timezone });
  const fields = repeat.trim().split(/\s+/);
  const [minute, hour, day, month, days] = fields;
  const fixed = /^[0-9]{1,2}$/;
  if (fields.length !== 5 || month !== "*" || (day !== "*" && days !== "*")) return t("by_cron", { repeat, timezone });
  if (!fixed.test(minute) || !fixed.test(hour)) {
    const every = /^\*\/([0-9]+)$/.exec(minute);
    if (day !== "*" || days !== "*" || hour !== "*") return t("by_cron", { repeat, timezone });
    if (every && 60 % every[1] === 0) return counted("every_minutes", Number(every[1]));
    return fixed.test(minute) ? t("every_hour", { minute: two(minute) }) : t("by_cron", { repeat, timezone });
  }
  const time = `${two(hour)}:${two(minute)}`;
  if (day !== "*") return fixed.test(day) ? t("every_month", { day, time, timezone }) : t("by_cron", { repeat, timezone });
  if (days === "*") return t("every_day", { time, timezone });
  const names = daysInWords(days.toUpperCase());
  return names === null ? t("by_cron", { repeat, timezone }) : t("every_week", { days: names, time, timezone });
}

function daysInWords(text) {
  const number = (name) => DAYS[name] ?? (/^[0-6]$/.test(name) ? Number(name) : null);
  const parts = text.split(",").map((part) => part.split("-").map(number));
  if (parts.some((part) => part.length > 2 || part.includes(null))) return null;
  return enumerated(parts.map((part) => part.map(weekday).join(t("day_to_day"))));
}

function Times({ times, now }) {
  return html`<p class="facts">${t("times_in_zone", { zone: zone(now) })}</p>
    <ol class="rounds">
      ${times.map((begins) => html`<li key=${begins}><time datetime=${begins}>${dayAndTime(Date.parse(begins))}</time><span class="facts">${unspaced(t("in_time", { time: roughDuration(Date.parse(begins) - now) }))}</span></li>`)}
    </ol>`;
}

export function NextRounds({ sale, now }) {
  return html`<section aria-labelledby="rounds-title">
    <h2 id="rounds-title">${t("next_rounds")}</h2>
    <p class="result">${inWords(sale.repeat, sale.timezone, Date.parse(sale.begins_at))}</p>
    ${sale.next_rounds.length > 0 ? html`<${Times} times=${sale.next_rounds} now=${now} />` : html`<p class="facts">${t("no_next_rounds")}</p>`}
  </section>`;
}

/** The server's word on what is being typed in, before it is announced. What is wrong goes to `onWrong`, by field. */
export function useWindows(wanted, onWrong) {
  const [windows, setWindows] = useState(null);
  const text = wanted === null ? "" : JSON.stringify(wanted);
  useEffect(() => {
    setWindows(null);
    if (text === "") return undefined;
    let over = false;
    const timer = setTimeout(async () => {
      try {
        const answer = await ask("POST", "/v1/admin/windows", JSON.parse(text));
        if (!over) setWindows(answer.windows);
        if (!over) onWrong([]);
      } catch (error) {
        if (!over) onWrong(error.problem?.errors ?? []);
      }
    }, TYPING_MS);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [text]);
  return windows;
}

export function Preview({ wanted, windows, now }) {
  if (wanted === null || windows === null) return null;
  const times = windows.map((window) => window.begins_at);
  return html`<div class="preview" role="status">
    <p class="result">${inWords(wanted.repeat, wanted.timezone, Date.parse(wanted.begins_at))}</p>
    <${Times} times=${times} now=${now} />
  </div>`;
}
