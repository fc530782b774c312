// Orders: all of them, or by their id, their buyer or a code of theirs, with everything that ever happened to them.

import { useEffect, useRef, useState } from "../../vendor/preact/hooks.mjs";
import { dateTime, money, readable, t } from "../i18n.js";
import { sumOf } from "../receipt.js";
import { Chip, html } from "../ui.js";
import { OrderActions } from "./order_actions.js";
import { OrderList } from "./order_list.js";
import { OwnFacts } from "./own_facts.js";
import { refundReason } from "./refunds.js";
import { said } from "./sentences.js";
import { ask, told } from "./session.js";

// 13 characters of Crockford's base32, with or without hyphens; everything else is a buyer.
const ORDER = /^[0-9a-tv-z]{4}-?[0-9a-tv-z]{4}-?[0-9a-tv-z]{5}$/i;

export function OrdersView({ wanted, saleId, sales, titles }) {
  const [text, setText] = useState(wanted ?? "");
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  const asked = useRef(0);
  const search = async (what) => {
    const mine = ++asked.current;
    setProblem("");
    if (what === "") return;
    try {
      let answer = { orders: [] };
      if (ORDER.test(what)) answer = await ask("GET", `/v1/admin/orders?order_id=${encodeURIComponent(what)}`);
      if (answer.orders.length === 0) answer = await ask("GET", `/v1/admin/orders?user=${encodeURIComponent(what)}`);
      if (answer.orders.length === 0) answer = await ofCode(what);
      if (mine === asked.current) setFound({ what, orders: answer.orders }); // otherwise something else is wanted by now
    } catch (error) {
      if (mine === asked.current) setProblem(told(error));
    }
  };
  const submitted = useRef(null);
  useEffect(() => {
    if (wanted !== submitted.current) setText(wanted ?? ""); // what was submitted here is there already, and may be changed again
    setFound(null);
    search(wanted ?? "");
  }, [wanted]);
  const submit = (event) => {
    event.preventDefault();
    const what = text.trim();
    submitted.current = what;
    if (what === wanted) search(what);
    else location.hash = `#/orders/${encodeURIComponent(what)}`;
  };
  return html`<div class="view">
    <h1>${t("orders")}</h1>
    <form class="search" role="search" onSubmit=${submit}>
      <label class="field"><span>${t("order_or_buyer")}</span>
        <input name="what" autocomplete="off" value=${text} onInput=${(event) => setText(event.target.value)} /></label>
      <button type="submit" class="button primary">${t("find")}</button>
    </form>
    <p class="problem" role="alert">${problem}</p>
    <div role="status" aria-live="polite">
      ${found && html`<p class="facts">${found.orders.length === 0 ? t("nothing_found", { what: found.what }) : t("found_orders", { many: found.orders.length })}</p>`}
    </div>
    ${!wanted && html`<${OrderList} key=${saleId} saleId=${saleId} sales=${sales} titles=${titles} />`}
    ${found?.orders.map((one) => html`<${Found} key=${one.order?.order_id} one=${one} sale=${sales.find(({ id }) => id === one.order?.sale_id)} onChange=${() => search(found.what)} />`)}
  </div>`;
}

function Found({ one, sale, onChange }) {
  const { order, ordinal, buyer, events, letters, payments, actions, vouchers } = one;
  const lines = [
    ...(order ? [{ at: order.created_at, state: "queued", text: t("cause_admitted") }] : []),
    ...letters.flatMap((letter) => letter.history.map(({ at, reason }) => ({ at, state: "dead", text: t("cause_tried", { reason: said(reason) }) }))),
    ...events.map(({ at, state, cause }) => ({ at, state, text: explained(cause) })),
    ...payments.flatMap((payment) => ofPayment(payment, order?.order_id)),
    ...actions.map((action) => ofAction(action, order.currency)),
    ...vouchers.filter(({ redeemed_at: at }) => at !== null).map(({ redeemed_at: at, code }) => ({ at, state: "voucher", text: t("code_redeemed_text", { code }) })),
  ].sort((first, second) => first.at.localeCompare(second.at)); // all in UTC, to the millisecond
  return html`<article class="found">
    <header>
      <h2>${order ? readable(order.order_id) : t("never_written")}</h2>
      ${order && html`<${Chip} state=${order.state} label=${t(`order_${order.state}`)} />`}
    </header>
    ${order && html`<p class="facts"><a href=${`#/sales/${order.sale_id}`}>${sale?.title ?? order.sale_id}</a>${order.item_title ? ` · ${order.item_title}` : ""}${ordinal === null ? "" : ` · ${t("round", { ordinal })}`} · ${buyer} · ${sumOf(order)}</p>`}
    ${order && html`<${OrderActions} order=${order} onChange=${onChange} />`}
    ${vouchers.length > 0 && html`<ul class="codes-of">${vouchers.map(({ id, code, state }) => html`<li key=${id}><code>${code}</code> <${Chip} state=${state} label=${t(`code_${state}`)} /></li>`)}</ul>`}
    ${order && html`<${OwnFacts} ids=${{ own_id_of_sale: sale?.external_id, own_id_of_item: order.item_external_id }} metadata=${order.metadata} />`}
    <ol class="history">
      ${lines.map(
        ({ at, state, text }, index) => html`<li key=${index}>
          <time datetime=${at}>${dateTime(Date.parse(at))}</time>
          <${Chip} state=${state} label=${t(LABELS[state] ?? `order_${state}`)} />
          <span class="text">${text}</span>
        </li>`,
      )}
    </ol>
    ${letters.length > 0 && html`<p class="facts"><a href="#/dead">${t("see_dead")}</a></p>`}
  </article>`;
}

/** The order that has this code, or had it. */
async function ofCode(code) {
  try {
    const { order_id: id } = await ask("GET", `/v1/admin/vouchers/${encodeURIComponent(code)}`);
    return id === null ? { orders: [] } : await ask("GET", `/v1/admin/orders?order_id=${id}`);
  } catch (error) {
    if (error.status === 404) return { orders: [] };
    throw error;
  }
}

const LABELS = { dead: "tried", payment: "payment", refund: "refund", action: "action", voucher: "code" };

function ofAction({ at, action, amount_cents: cents, return_unit: back, reason }, currency) {
  if (action === "cancel") return { at, state: "action", text: t("action_cancelled_text", { reason }) };
  const amount = cents === null ? t("action_all_left") : money(cents, currency);
  return { at, state: "action", text: t("action_refunded_text", { amount, units: t(back ? "action_units_back" : "action_units_kept"), reason }) };
}

/** Money arrived; it paid this order or another, is late, or goes back. */
function ofPayment(payment, orderId) {
  const values = { amount: money(payment.amount_cents, payment.currency), provider: payment.provider, payment: payment.payment_id };
  const lines = [{ at: payment.at, state: "payment", text: html`${t("payment_arrived", values)} ${fate(payment, orderId)}` }];
  for (const refund of payment.refunds) {
    const amount = money(refund.amount_cents, refund.currency);
    lines.push({ at: refund.created_at, state: "refund", text: t("refund_owed", { amount, reason: refundReason(refund.reason) }) });
    if (refund.done_at !== null) lines.push({ at: refund.done_at, state: "refund", text: t("refund_made_text", { amount }) });
  }
  return lines;
}

function fate({ order_id: meant, pays, waits }, orderId) {
  const link = (id) => html`<a href=${`#/orders/${id}`}>${readable(id)}</a>`;
  if (waits) return t("payment_waits");
  if (pays !== null && pays !== meant) return pays === orderId ? html`${t("payment_instead")} ${link(meant)}` : html`${t("payment_pays")} ${link(pays)}`;
  return "";
}

/** Causes are short words of the ledger; those that are known are said in the reader's language. */
const CAUSES = {
  recorded: "cause_recorded",
  "cancelled by the buyer": "cause_cancelled",
  "not paid in time": "cause_expired",
  "cancelled by an operator": "cause_cancelled_by_operator",
  "refunded by an operator": "cause_refunded_by_operator",
  "given up": "cause_given_up",
};

function explained(cause) {
  const [what, of] = cause.split(":");
  if (of && what === "paid") return t("cause_paid", { provider: of });
  if (of && what === "paid late") return t("cause_paid_late", { provider: of });
  if (of && what === "paid too late") return t("cause_too_late", { reason: refundReason(of) });
  return cause in CAUSES ? t(CAUSES[cause]) : cause;
}
