// What stands where the result will be: the countdown, the waiting, and the answers that are a no.

import { base } from "./api.js";
import { counted, has, parts, readable, t, time } from "./i18n.js";
import { html } from "./ui.js";

export function Countdown({ label, leftMs }) {
  const [days, hours, minutes, seconds] = parts(leftMs);
  return html`<div class="countdown">
    <p id="countdown-label">${label}</p>
    <p class="digits" role="timer" aria-labelledby="countdown-label">
      ${days > 0 && html`<span class="days">${counted("days", days)}</span>`}
      <span>${hours}</span><span class="colon">:</span><span>${minutes}</span><span class="colon">:</span><span>${seconds}</span>
    </p>
  </div>`;
}

export const STEPS = ["pressed", "admitted", "written"];

/** Where an order is on its way. Done, under way or still to come: by a sign and a word, not by colour alone. */
export function Steps({ done }) {
  return html`<ol class="steps">
    ${STEPS.map((step, index) => {
      const state = index < done ? "done" : index === done ? "now" : "later";
      return html`<li key=${step} data-state=${state}>
        <span aria-hidden="true">${state === "done" ? "✓" : state === "now" ? "…" : ""}</span>
        ${t(`step_${step}`)}<span class="visually-hidden"> ${t(`step_is_${state}`)}</span>
      </li>`;
    })}
  </ol>`;
}

export function Sending({ phase }) {
  const trouble = phase.tries > 0;
  const text = trouble && (phase.code === "offline" || phase.code === "unknown") ? t("unclear_text") : t("busy_text");
  return html`<div class="panel" tabindex="-1" data-phase="sending">
      <div role="status" aria-live="polite">
        <p class="headline" data-state="queued">${trouble ? t(phase.code === "offline" ? "offline_title" : "busy_title") : t("sending_title")}</p>
        <p class="result">${trouble ? text : t("sending_text")}</p>
      </div>
      <${Steps} done=${0} />
    </div>
    <div class="action"><button type="button" class="button primary" disabled>${t("please_wait")}</button></div>`;
}

/** What happened, what it means, what to do next. */
export function Refusal({ phase, limit, now }) {
  const { code, problem } = phase;
  if (!has(`refused_${code}`)) return html`<p class="result" data-refusal=${code}>${t("action_failed")}</p>`;
  const at = problem.begins_at ?? problem.again_at;
  const values = { limit, time: at ? time(Date.parse(at), now) : "" };
  const why = code === "limit_reached" && limit > 1 ? "limit_exceeded" : code;
  return html`<div data-refusal=${code}>
    <p class="headline" data-state="refused">${t(`refused_${why}_title`)}</p>
    <p class="result">${t(`refused_${why}`, values)}</p>
    ${(problem.order_ids ?? []).map((id) => html`<p key=${id}><a href=${`${base}/orders/${id}`}>${t("order_number", { number: readable(id) })}</a></p>`)}
  </div>`;
}
