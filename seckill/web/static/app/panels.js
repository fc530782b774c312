// What stands where the result will be: the countdown, the waiting, and the answers that are a no.

import { base, isEmbedded } from "./api.js";
import { counted, exactTime, has, parts, readable, sentences, t, time } from "./i18n.js";
import { PassNote } from "./pass.js";
import { html } from "./ui.js";

export function Countdown({ label, leftMs }) {
  const [days, hours, minutes, seconds] = parts(leftMs);
  return html`<div class="countdown">
    <p id="countdown-label">${label}</p>
    <p class="digits" role="timer" aria-labelledby="countdown-label">
      ${days > 0 && html`<span class="days">${counted("days", days)}</span>`}
      <span class="pair">${hours}</span><span class="colon">:</span><span class="pair">${minutes}</span><span class="colon">:</span><span class="pair">${seconds}</span>
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
        ${t(`step_${index === 0 && done === 0 ? "sending" : step}`)}<span class="visually-hidden"> ${t(`step_is_${state}`)}</span>
      </li>`;
    })}
  </ol>`;
}

export function Sending({ phase, pass }) {
  const trouble = phase.tries > 0;
  const text = trouble && (phase.code === "offline" || phase.code === "unknown") ? t("unclear_text") : t("busy_text");
  return html`<div class="panel" tabindex="-1" data-phase="sending">
      <div role="status" aria-live="polite">
        <p class="headline" data-state="queued"><span class="busy" aria-hidden="true"></span>${trouble ? t(phase.code === "offline" ? "offline_title" : "busy_title") : t("sending_title")}</p>
        <p class="result">${trouble ? text : t("sending_text")}</p>
      </div>
      ${pass.state !== "ready" && html`<${PassNote} pass=${pass} />`}
      <${Steps} done=${0} />
    </div>
    <div class="action"><button type="button" class="button primary" disabled>${t("please_wait")}</button></div>`;
}

/** What is known of it: when that was decided, when the last unit went, and what may come back. */
function SoldOutFacts({ problem, now }) {
  const { decided_at: decided, sold_out_at: soldOut, may_return: unpaid } = problem;
  if (!decided) return null;
  const times = { decided: exactTime(Date.parse(decided), now), sold_out: soldOut ? exactTime(Date.parse(soldOut), now) : "" };
  return html`<p class="facts" data-why>${t(soldOut ? "why_sold_out" : "why_decided", times)}${unpaid ? ` ${counted("why_unpaid", unpaid)}` : ""}</p>`;
}

/** To the page of an order; where there is none of ours around, it is shown in this place. */
export function OrderLink({ id, look = "", onShow, children }) {
  if (!isEmbedded()) return html`<a class=${look} href=${`${base}/orders/${id}`}>${children}</a>`;
  return html`<button type="button" class=${look || "link"} onClick=${() => onShow(id)}>${children}</button>`;
}

/** What happened, what it means, what to do next. */
export function Refusal({ phase, limit, listed, now, onShow }) {
  const { code, problem } = phase;
  if (!has(`refused_${code}`)) return html`<p class="result" data-refusal=${code}>${t("action_failed")}</p>`;
  const at = problem.begins_at ?? problem.again_at;
  const values = { limit, time: at ? time(Date.parse(at), now) : "" };
  const why = code === "limit_reached" && limit > 1 ? "limit_exceeded" : code;
  return html`<div data-refusal=${code}>
    <p class="headline" data-state="refused">${t(`refused_${why}_title`)}</p>
    <p class="result">${code === "sold_out" && problem.may_return === 0 ? sentences(t("refused_sold_out_listed"), t("explain_sold_out_paid")) : code === "sold_out" && listed ? t("refused_sold_out_listed") : t(`refused_${why}`, values)}</p>
    ${code === "sold_out" && html`<${SoldOutFacts} problem=${problem} now=${now} />`}
    ${(problem.order_ids ?? []).map((id) => html`<p key=${id}><${OrderLink} id=${id} onShow=${onShow}>${t("order_number", { number: readable(id) })}<//></p>`)}
  </div>`;
}
