// An order that exists: being written, to be paid, or over.

import { base, isEmbedded, meta } from "./api.js";
import { countedIf, money, readable, sentences, shortDuration, t } from "./i18n.js";
import { goesOn } from "./live.js";
import { OrderLink, Steps } from "./panels.js";
import { Receipt, sumOf } from "./receipt.js";
import { html } from "./ui.js";

/** Counts towards the limit. */
export const isLive = (state) => ["queued", "unpaid", "paid"].includes(state);

const TROUBLES = { not_sandbox: "pay_at_shop", payment_refused: "payment_refused", provider_away: "provider_away" };

/** The buyer comes from the payment provider's page; whether the money is there, its notice tells. */
const isBack = () => new URLSearchParams(location.search).get("paid") === "wait";

export function OrderPanel({ order, sale, now, via, phase, armed, again, codes, turn, onPay, onCancel, onShow, children }) {
  const { state } = order;
  const free = order.price_cents === 0;
  const left = order.pay_before ? Date.parse(order.pay_before) - now : null;
  const late = state === "unpaid" && left !== null && left <= 0;
  const title = state === "paid" && free ? "order_free_title" : late ? "order_late_title" : turn && goesOn(state) ? "line_served" : `order_${state}_title`;
  const scans = state === "unpaid" && !late && order.pay_qr;
  return html`<div class="panel" tabindex="-1" data-order-id=${order.order_id} data-order-state=${state} data-via=${via ?? ""}>
      <div role="status" aria-live="polite">
        <p class="headline" data-state=${state}>
          ${["queued", "paid", "unpaid"].includes(state) && !late && title !== "line_served" && html`<span class="sign" aria-hidden="true">✓</span>`}
          ${countedIf(title, order.quantity)}
        </p>
        <p class="result">${state === "unpaid" && !late && isBack() ? t("order_confirming_text") : explained(order, late, turn)}</p>
      </div>
      ${state !== "paid" && html`<p class="facts">${t("order_number", { number: readable(order.order_id) })}${order.item_title ? ` · ${order.item_title}` : ""}${order.quantity > 1 ? ` · ${sumOf(order)}` : ""}</p>`}
      ${state === "queued" && html`<${Steps} done=${2} />`}
      ${scans && html`<figure class="scan"><img src=${order.pay_qr} alt=${t("scan_alt")} /><figcaption>${t("scan")}</figcaption></figure>`}
      ${goesOn(state) && via === null && html`<p class="facts" role="status">${t("reconnecting")}</p>`}
      ${phase.kind === "trouble" && html`<p class="problem" role="alert">${t(TROUBLES[phase.code] ?? "action_failed")}</p>`}
    </div>
    ${codes}
    ${state === "paid" && html`<${Receipt} order=${order} sale=${sale} />`}
    <${OrderAction} order=${order} sale=${sale} left=${left} late=${late} phase=${phase} armed=${armed} again=${again} onPay=${onPay} onCancel=${onCancel} onShow=${onShow} />
    ${children}`;
}

function explained({ state, price_cents: price, replaced_by: other, refunded_cents: back = 0, closed_by: by, paid_at: paid, currency, quantity }, late, turn) {
  if (late) return t("order_late_text");
  if (other) return t("order_replaced_text");
  if (state === "cancelled" && by) return t("order_cancelled_by_shop_text");
  if (state === "refunded" && paid) return price === 0 ? t("order_taken_back_text") : t("order_refunded_by_shop_text", { amount: money(back, currency) });
  if (state === "paid" && back > 0) return sentences(t("order_paid_text"), t("order_refunded_in_part", { amount: money(back, currency) }));
  return countedIf(state === "paid" && price === 0 ? "order_free_text" : turn && state === "unpaid" ? "line_served_text" : `order_${state}_text`, quantity);
}

/** One button, always at the same place: `again` is the one to buy once more, where that is possible. */
function OrderAction({ order, sale, left, late, phase, armed, again, onPay, onCancel, onShow }) {
  const busy = phase.kind === "pay" || phase.kind === "cancel";
  if (order.state === "queued") {
    return html`<div class="action"><button type="button" class="button primary" disabled>${t("please_wait")}</button></div>`;
  }
  if (order.state === "unpaid") {
    return html`<div class="action">
      ${left !== null && !late && html`<p class="pay-within"><span>${t("pay_within")}</span> <span class="digits" role="timer">${shortDuration(left)}</span></p>`}
      <${Pay} order=${order} ready=${armed && !busy && !late} busy=${busy} onPay=${onPay} />
      <button type="button" class="link" data-action="cancel" disabled=${busy} onClick=${onCancel}>${t("cancel_order")}</button>
    </div>`;
  }
  if (order.replaced_by) {
    return html`<div class="action"><${OrderLink} id=${order.replaced_by} look="button primary" onShow=${onShow}>${t("replaced_by")}<//></div>`;
  }
  if (again !== null || isEmbedded()) return again;
  const isBought = order.state === "paid";
  if (isBought && sale.return_url) return html`<div class="action"><a class="button primary" href=${sale.return_url} rel="noreferrer">${t("back_to_shop")}</a><a class="link" href=${`${base}/orders`}>${t("my_orders")}</a></div>`;
  const [path, label] = isBought || sale.state === "ended" ? ["/orders", "my_orders"] : ["/", "all_sales"];
  return html`<div class="action"><a class="button quiet" href=${`${base}${path}`}>${t(label)}</a></div>`;
}

/** In the shop if it has told us where, on the provider's page if it has one, here in the sandbox only. */
function Pay({ order, ready, busy, onPay }) {
  const shop = meta("pay");
  if (shop === "" && meta("sandbox") !== "on" && meta("checkout") !== "on") return html`<p class="notice">${t("pay_at_shop")}</p>`;
  const label = busy ? t("please_wait") : t("pay", { price: money(order.price_cents, order.currency) });
  if (shop !== "" && ready) return html`<a class="button primary" data-action="pay" href=${payAddress(shop, order)}>${label}</a>`;
  if (order.pay_qr) return null;
  return html`<button type="button" class=${`button ${isBack() ? "quiet" : "primary"}`} data-action="pay" disabled=${!ready} onClick=${onPay}>${label}</button>`;
}

function payAddress(shop, order) {
  const target = new URL(shop);
  target.searchParams.set("order_id", order.order_id);
  return target.href;
}
