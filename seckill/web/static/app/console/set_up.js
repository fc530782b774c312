// What was set up for a sale in which no one has bought yet, and the address for buyers.

import { useState } from "../../vendor/preact/hooks.mjs";
import { base } from "../api.js";
import { count, money, t } from "../i18n.js";
import { html } from "../ui.js";
import { usePolled } from "./data.js";

const EVERY_MS = 10_000;

const addressOf = (sale) => `${location.origin}${base}/sales/${sale.id}`;

/** To be handed on. */
export function ShareLink({ sale }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(addressOf(sale)).then(() => setCopied(true), () => {});
  };
  return html`<span class="share"><a href=${addressOf(sale)} target="_blank" rel="noopener"><code>${addressOf(sale)}</code></a>
    ${navigator.clipboard && html` <button type="button" class="link" onClick=${copy}>${t("webhook_copy")}</button>`}
    <span role="status" class="facts">${copied ? t("webhook_copied") : ""}</span></span>`;
}

/** The list of all sales leaves out what is long. */
export function SetUp({ sale }) {
  const [whole] = usePolled(`/v1/sales/${sale.id}`, EVERY_MS);
  const facts = factsOf({ ...sale, ...whole }).filter(([, value]) => value);
  return html`<section aria-labelledby="set-up-title" data-set-up>
    <h2 id="set-up-title">${t("set_up")}</h2>
    <dl class="set-up">
      ${facts.map(([label, value]) => html`<div key=${label}><dt>${label}</dt><dd class="text">${value}</dd></div>`)}
      ${sale.published && html`<div><dt>${t("link_for_buyers")}</dt><dd><${ShareLink} sale=${sale} /></dd></div>`}
    </dl>
  </section>`;
}

function factsOf(sale) {
  const { groups = [], early = [], list = false } = sale.audience ?? {};
  const who = [
    groups.length > 0 && groups.join(", "),
    ...early.map((each) => `${each.groups.join(", ")}: −${t("step_min", { many: count(each.minutes) })}`),
    list && t("audience_buyers", { many: count(sale.list_buyers ?? 0) }),
  ].filter(Boolean);
  return [
    [t("field_price"), sale.items ? null : money(sale.price_cents, sale.currency)],
    [t("items"), sale.items?.map((item) => `${item.title}: ${count(item.units)} × ${money(item.price_cents, sale.currency)}`).join(" · ")],
    [t("field_list_price"), sale.list_price_cents ? money(sale.list_price_cents, sale.currency) : null],
    [t("field_limit_per_buyer"), count(sale.limit_per_buyer)],
    [t("field_pay_within"), count(Math.round(sale.pay_within_s / 60))],
    [t("field_order"), t(`order_${sale.order}`)],
    [t("line_of_list"), sale.waiting_list ? t("field_waiting_list") : null],
    [t("door"), who.length > 0 ? who.join(" · ") : null],
    [t("field_pass"), sale.pass === "none" ? null : t(`pass_${sale.pass}`)],
    [t("field_images"), sale.images.length > 0 ? count(sale.images.length) : null],
    [t("field_description"), sale.description],
    [t("field_delivery"), sale.delivery],
  ];
}
