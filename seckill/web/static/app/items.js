// The sizes or colours of a sale: which one it is to be, and what that costs.

import { useId } from "../vendor/preact/hooks.mjs";
import { money, t } from "./i18n.js";
import { html } from "./ui.js";

export const itemOf = (sale, itemId) => sale.items?.find((item) => item.item_id === itemId) ?? null;

/** Of one unit: of the item that is chosen, or the lowest of all. */
export const priceOf = (sale, itemId) => itemOf(sale, itemId)?.price_cents ?? sale.price_cents;

export const hasSeveralPrices = (sale) => (sale.items ?? []).some((item) => item.price_cents !== sale.price_cents);

const SHORT = 3; // characters, as sizes have: three beside each other on a phone

/** `isGone` tells of an item whether it is sold out, as far as is known. */
export function ItemChoice({ sale, chosen, isGone, onChoose }) {
  const group = useId();
  const prices = hasSeveralPrices(sale);
  const short = !prices && sale.items.every(({ title }) => title.length <= SHORT);
  return html`<fieldset class=${`items${short ? " short" : ""}`}>
    <legend>${t("choose_item")}</legend>
    ${sale.items.map((item) => {
      const gone = isGone(item);
      return html`<label key=${item.item_id} class="item" data-gone=${gone}>
        <input type="radio" name=${group} value=${item.item_id} checked=${item.item_id === chosen} disabled=${gone} onChange=${() => onChoose(item.item_id)} />
        <span class="item-title" dir="auto">${item.title}</span>
        ${gone ? html` <span class="item-note">${t("sale_sold_out")}</span>` : prices && html` <span class="item-note">${money(item.price_cents, sale.currency)}</span>`}
      </label>`;
    })}
  </fieldset>`;
}
