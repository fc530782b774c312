// What came of a round: money, how much is sold, and the way from a press to a payment.

import { count, htmlLanguage, shortDuration, t, time } from "../i18n.js";
import { html } from "../ui.js";
import { amount } from "./amounts.js";

const percent = (share) => (share === null ? "–" : new Intl.NumberFormat(htmlLanguage(), { style: "percent", maximumFractionDigits: share > 0 && share < 0.1 ? 1 : 0 }).format(share));

const LONG_AMOUNT = 13; // characters: set smaller, beside the next figure

/** `inLine`: units go to those in its line, so nobody gets one by pressing. `isOn`: units came back and are on sale. */
export function Summary({ summary, over, isOn, repeats, inLine, now }) {
  if (summary === null) return null;
  const { conversion } = summary;
  return html`<section class="summary" aria-labelledby="summary-title">
    <h2 id="summary-title">${t("summary")}</h2>
    <dl class="stats">
      <${Money} summary=${summary} over=${over} repeats=${repeats} />
      <div><dt>${t("summary_sell_through")}</dt><dd>${percent(summary.sell_through)}</dd>
        <dd class="facts">${t("paid_of", { paid: count(summary.paid_units), units: count(summary.units) })}${summary.sold_units > summary.paid_units ? ` · ${t("reserved", { many: count(summary.sold_units - summary.paid_units) })}` : ""}</dd></div>
      <div data-fact="sold_out"><dt>${t(isOn && summary.sold_out_at !== null ? "summary_first_sold_out" : "summary_sold_out")}</dt>
        ${summary.sold_out_at === null
          ? html`<dd class="quiet">${t(over ? "summary_never_sold_out" : "summary_not_sold_out")}</dd>`
          : html`<dd>${t("summary_sold_out_after", { time: lasted(summary.seconds_to_sell_out) })}</dd><dd class="facts">${time(Date.parse(summary.sold_out_at), now)}</dd>`}</div>
      <div><dt>${t("summary_lapse")}</dt><dd>${percent(conversion.orders === 0 ? null : summary.lapse_rate)}</dd>
        <dd class="facts">${t("summary_lapsed_of", { many: count(summary.lapsed), orders: count(conversion.orders) })}</dd></div>
    </dl>
    <h3>${t(inLine ? "conversion_in_line" : "conversion")}</h3>
    <${Funnel} conversion=${conversion} inLine=${inLine} />
    ${summary.items && html`<h3>${t("by_item")}</h3><${ByItem} summary=${summary} />`}
  </section>`;
}

/** To a tenth where that matters. */
const lasted = (seconds) => (seconds < 60 ? t("seconds", { many: seconds.toFixed(1) }) : shortDuration(1000 * seconds));

function Money({ summary, over, repeats }) {
  if (summary.money.length === 0) return html`<div data-fact="money"><dt>${t("summary_net")}</dt><dd class="quiet">${t(over ? "summary_never_money" : "summary_no_money")}</dd></div>`;
  return summary.money.map(({ currency, taken_cents: taken, refunded_cents: refunded, refunding_cents: waits, net_cents: net }) => {
    const whole = summary.money_of_all_rounds.find((each) => each.currency === currency);
    return html`<div key=${currency} data-fact="money"><dt>${t("summary_net")}</dt><dd class=${amount(net, currency).length > LONG_AMOUNT ? "long" : ""}>${amount(net, currency)}</dd>
      <dd class="facts">${t("summary_money", { taken: amount(taken, currency), refunded: amount(refunded, currency) })}</dd>
      ${waits > 0 && html`<dd class="facts">${t("summary_refunding", { amount: amount(waits, currency) })}</dd>`}
      ${repeats && whole && html`<dd class="facts">${t("summary_all_rounds", { amount: amount(whole.net_cents, currency) })}</dd>`}</div>`;
  });
}

function Funnel({ conversion, inLine }) {
  const steps = [
    ...(inLine ? [] : [["presses", conversion.presses, null]]),
    ["orders", conversion.orders, inLine ? null : conversion.orders_per_press],
    ["paid", conversion.paid_orders, conversion.paid_per_order],
  ];
  const most = Math.max(1, steps[0][1]);
  return html`<ol class="funnel">
      ${steps.map(
        ([name, many, share]) => html`<li key=${name} data-step=${name}><span>${t(`conversion_${name}`)}</span>
          <span class="track" aria-hidden="true"><span class="done" style=${{ width: `${(100 * many) / most}%` }}></span></span>
          <strong class="number">${count(many)}</strong>
          <span class="facts">${share === null ? "" : t("conversion_of", { share: percent(share) })}</span></li>`,
      )}
    </ol>
    ${!inLine && html`<p class="facts">${t("conversion_why")}</p>`}`;
}

function ByItem({ summary }) {
  const currency = summary.money[0]?.currency;
  return html`<div class="scroll"><table class="by-item">
    <thead><tr><th scope="col">${t("field_item")}</th><th scope="col" class="number">${t("column_sold")}</th><th scope="col" class="number">${t("summary_sell_through")}</th><th scope="col" class="number">${t("column_revenue")}</th></tr></thead>
    <tbody>${summary.items.map(
      (item) => html`<tr key=${item.item_id}><th scope="row" class="text">${item.title}</th><td class="number">${t("sold_of", { sold: count(item.sold_units), units: count(item.units) })}</td>
        <td class="number">${percent(item.sell_through)}</td><td class="number">${currency ? amount(item.net_cents, currency) : "–"}</td></tr>`,
    )}</tbody>
  </table></div>`;
}
