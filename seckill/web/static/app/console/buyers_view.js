// How buyers will see a sale that is being filled in: roughly, and nothing in it can be pressed.

import { useState } from "../../vendor/preact/hooks.mjs";
import { minorUnits } from "../currencies.js";
import { count, money, period, roundTime, stock, t } from "../i18n.js";
import { Gallery, Details, Price } from "../goods.js";
import { html } from "../ui.js";

/** As the API would tell of it, as far as what was typed makes sense. */
function asSale(values, sale, now) {
  const currency = sale?.currency ?? values.currency;
  const cents = (typed) => minorUnits((typed ?? "").trim() || "0", currency);
  const items = values.items.length > 0 ? values.items.map((item, place) => ({ item_id: item.item_id ?? String(place), title: item.title, price_cents: item.price_cents ?? cents(item.price) ?? NaN, units: Number(item.units) || 0 })) : undefined;
  const [begins, ends] = [Date.parse(values.begins_at), Date.parse(values.ends_at)];
  return {
    id: sale?.id ?? "preview",
    title: values.title.trim(),
    currency,
    items,
    price_cents: items ? Math.min(...items.map((item) => item.price_cents)) : (sale?.price_cents ?? (values.free ? 0 : values.price.trim() === "" ? NaN : (cents(values.price) ?? NaN))),
    list_price_cents: values.list_price.trim() === "" ? null : cents(values.list_price),
    units: items ? items.reduce((sum, item) => sum + item.units, 0) : (sale?.units ?? (Number(values.units) || 0)),
    limit_per_buyer: Number(values.limit_per_buyer) || 1,
    begins_at: new Date(Number.isNaN(begins) ? now : begins).toISOString(),
    ends_at: new Date(Number.isNaN(ends) ? now : ends).toISOString(),
    state: begins > now ? "scheduled" : "open",
    images: values.images.split(/\s+/).filter((address) => /^(https:\/\/|\/)/.test(address)),
    description: values.description.trim(),
    delivery: values.delivery.trim(),
    terms_url: /^https:\/\//.test(values.terms_url.trim()) ? values.terms_url.trim() : null,
    return_url: null,
  };
}

/** Drawn only when it is opened, so that no picture is fetched from a half-typed address. */
export function BuyersView(parts) {
  const [open, setOpen] = useState(false);
  return html`<details class="advanced" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${t("buyers_view")}</summary>${open && html`<${View} ...${parts} />`}
  </details>`;
}

/** What theirs will say. */
function buttonOf({ state, begins_at: at, price_cents: cents, currency }, now) {
  if (state === "scheduled") return t("begins_at", { time: roundTime(Date.parse(at), now) });
  if (!Number.isFinite(cents)) return t("preview_buy");
  return t(cents > 0 ? "buy" : "buy_free", { price: money(cents, currency) });
}

function View({ values, sale, now }) {
  const shown = asSale(values, sale, now);
  return html`<div class="buyers-view" inert>
    <${Gallery} sale=${shown} />
    <div class="buyers-view-text">
      <h3>${shown.title || t("field_title")}</h3>
      ${Number.isFinite(shown.price_cents) && html`<${Price} sale=${shown} />`}
      <p class="facts">${stock(shown)}</p>
      <p class="facts">${period(shown, now)}</p>
      ${shown.items && html`<ul class="codes-of">${shown.items.map((item) => html`<li key=${item.item_id} class="chip">${item.title} · ${count(item.units)}</li>`)}</ul>`}
      <button type="button" class="button primary" disabled=${shown.state === "scheduled"}>${buttonOf(shown, now)}</button>
    </div>
    <${Details} sale=${shown} />
  </div>`;
}
