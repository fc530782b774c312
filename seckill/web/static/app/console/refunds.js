// Refunds: those that the provider was asked for, and those that people have to make by hand.

import { useState } from "../../vendor/preact/hooks.mjs";
import { nowMs } from "../clock.js";
import { counted, has, money, readable, shortTime, t } from "../i18n.js";
import { Chip, Confirm, Empty, html } from "../ui.js";
import { usePolled } from "./data.js";
import { ask, may, told } from "./session.js";
import { asksWhy } from "./why.js";

export const refundReason = (reason) => (has(`refund_${reason}`) ? t(`refund_${reason}`) : reason);

export function RefundsView() {
  const [content, trouble, reload] = usePolled("/v1/admin/refunds", 5_000);
  const [question, setQuestion] = useState(null);
  const [problem, setProblem] = useState("");
  const confirm = (refund) => () =>
    setQuestion(asksWhy({
      title: t("refund_done_title"),
      effect: t("refund_done_effect", { amount: money(refund.amount_cents, refund.currency), payment: refund.payment_id }),
      yes: t("refund_done_yes"),
      act: async ({ reason }) => {
        try {
          await ask("POST", `/v1/admin/refunds/${refund.id}/done`, undefined, { reason });
          setProblem("");
        } catch (error) {
          setProblem(told(error));
        }
        reload();
      },
    }));
  return html`<div class="view">
    <h1>${t("refunds")}</h1>
    <p class="facts">${t("refunds_why")}</p>
    <p class="problem" role="alert">${problem}</p>
    ${content === null && html`<p class="facts" role="status">${trouble ? told(trouble) : t("loading")}</p>`}
    ${content?.refunds.length === 0 && html`<${Empty} text=${t("no_refunds")} />`}
    ${content?.refunds.length > 0 &&
    html`<section><div class="scroll"><table class="stacked">
      <thead><tr>
        <th scope="col">${t("order")}</th><th scope="col" class="number">${t("amount")}</th><th scope="col">${t("payment")}</th>
        <th scope="col">${t("reason")}</th><th scope="col">${t("refund_since")}</th><th scope="col">${t("state")}</th>
      </tr></thead>
      <tbody>${content.refunds.map((refund) => html`<${Row} key=${refund.id} refund=${refund} onDone=${confirm(refund)} />`)}</tbody>
    </table></div></section>`}
    <${Confirm} question=${question} onClose=${() => setQuestion(null)} />
  </div>`;
}

function Row({ refund, onDone }) {
  const made = refund.done_at !== null;
  return html`<tr>
    <td><a href=${`#/orders/${refund.order_id}`}>${readable(refund.order_id)}</a></td>
    <td class="number">${money(refund.amount_cents, refund.currency)}</td>
    <td class="text" data-label=${t("payment")}>${refund.provider} ${refund.payment_id}</td>
    <td class="text" data-label=${t("reason")}>${refundReason(refund.reason)}${refund.explanation ? `: ${refund.explanation}` : ""}
      ${refund.refused && html`<span class="problem">${t("refund_refused", { words: refund.refused })}</span>`}</td>
    <td data-label=${t("refund_since")}>${shortTime(Date.parse(refund.created_at), nowMs())}</td>
    <td><${Chip} state=${made ? "paid" : "queued"} label=${made ? t("refund_made") : counted("refund_waits", refund.attempts)} />
      ${!made && may("operator") && html`<button type="button" class="button quiet small" onClick=${onDone}>${t("refund_done")}</button>`}</td>
  </tr>`;
}
