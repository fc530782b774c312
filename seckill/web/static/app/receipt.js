// What was bought: for the buyer to keep, to quote, and to know what comes next.

import { useEffect, useState } from "../vendor/preact/hooks.mjs";
import { count, dayAndTime, money, readable, t } from "./i18n.js";
import { html } from "./ui.js";

const COPIED_MS = 2_000;

/** n × price = total; of one unit the price alone. */
export function sum(quantity, unitCents, currency) {
  const total = money(quantity * unitCents, currency);
  return quantity > 1 && unitCents > 0 ? t("sum", { many: count(quantity), price: money(unitCents, currency), total }) : total;
}

export const sumOf = ({ quantity, price_cents: total, currency }) => sum(quantity, total / quantity, currency);

/** A page that did not come over https may not write to the clipboard: then there is only the text. */
export function CopyButton({ text }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), COPIED_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
  };
  if (!navigator.clipboard) return null;
  return html`<button type="button" class="button quiet small" data-action="copy" onClick=${copy}>${t(copied ? "copied" : "copy")}</button><span class="visually-hidden" role="status">${copied ? t("copied") : ""}</span>`;
}

export function Receipt({ order, sale }) {
  const { order_id: id, item_title: item, refunded_cents: back = 0, currency } = order;
  const at = (text) => text && dayAndTime(Date.parse(text));
  const next = sale.vouchers || order.codes !== undefined ? t("next_step_codes") : sale.delivery || t("next_step_shop");
  const rows = [
    ["number", html`<span class="order-id">${readable(id)}</span> <${CopyButton} text=${id} />`],
    ["goods", sale.title],
    ["item", item],
    [order.quantity > 1 ? "total" : "price", sumOf(order)],
    ["ordered", at(order.created_at)],
    ["paid", order.price_cents > 0 && at(order.paid_at)],
    ["refunded", back > 0 && money(back, currency)],
  ];
  return html`<section class="receipt" aria-labelledby="receipt-title">
    <h2 id="receipt-title">${t("receipt")}</h2>
    <dl>${rows.filter(([, value]) => value).map(([name, value]) => html`<div key=${name} data-row=${name}><dt>${t(`receipt_${name}`)}</dt><dd>${value}</dd></div>`)}</dl>
    <h2>${t("next_step")}</h2>
    <p class="delivery" data-next=${next === sale.delivery ? "delivery" : ""} dir="auto">${next}</p>
  </section>`;
}
