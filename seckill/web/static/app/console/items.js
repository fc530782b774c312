// The sizes or colours of a sale: as rows of its form, and where the units of each are.

import { decimalsOf, minorUnits } from "../currencies.js";
import { count, money, t } from "../i18n.js";
import { html } from "../ui.js";
import { asTyped } from "./goods.js";

const ITEMS_MAX = 50;
const UNITS_MAX = 1_000_000_000;
const FIELDS = ["title", "units", "price", "external_id", "image"];
const EMPTY = { title: "", units: "", price: "", external_id: "", image: "" };
// Units are added and prices stay: only these can be changed later.
const CHANGEABLE = ["title", "external_id", "image"];

export const initialItems = (sale) =>
  (sale?.items ?? []).map(({ item_id, title, external_id, image }) => ({ item_id, title, external_id: external_id ?? "", image: image ?? "" }));

/** As rows of a new sale. */
export const copiedItems = (sale) =>
  (sale.items ?? []).map(({ title, units, price_cents, external_id, image }) => ({
    title,
    units: String(units),
    price: asTyped(price_cents, sale.currency),
    external_id: external_id ?? "",
    image: image ?? "",
  }));

const isWhole = (text) => /^[0-9]{1,10}$/.test(text.trim()) && Number(text) >= 1 && Number(text) <= UNITS_MAX;

/** Field → what is wrong with it, as far as it can be told here; the server knows the rest. */
export function checkItems(items, currency, isNew) {
  const wrong = {};
  items.forEach((item, place) => {
    if (item.title.trim() === "") wrong[`items[${place}].title`] = t("wrong_title_empty");
    if (!isNew) return;
    if (!isWhole(item.units)) wrong[`items[${place}].units`] = t("wrong_whole", { least: 1, most: count(UNITS_MAX) });
    if (item.price.trim() === "") wrong[`items[${place}].price`] = t("wrong_item_price_empty");
    else if (priceOf(item, currency) === null) wrong[`items[${place}].price`] = t("wrong_price", { exact: (99.5).toFixed(decimalsOf(currency)) });
  });
  return wrong;
}

const priceOf = (item, currency) => minorUnits(item.price.trim(), currency);

/** What the API is to know: all of them, or what has been changed. */
export function itemsBody(items, currency, sale) {
  if (sale === null) {
    const announced = items.map((item) => ({
      title: item.title.trim(),
      units: Number(item.units),
      price_cents: priceOf(item, currency),
      ...(item.external_id.trim() ? { external_id: item.external_id.trim() } : {}),
      ...(item.image.trim() ? { image: item.image.trim() } : {}),
    }));
    return items.length > 0 ? { items: announced } : {};
  }
  const before = initialItems(sale);
  const changed = items
    .map((item, place) => [item, CHANGEABLE.filter((name) => item[name].trim() !== before[place][name])])
    .filter(([, names]) => names.length > 0)
    .map(([item, names]) => ({ item_id: item.item_id, ...Object.fromEntries(names.map((name) => [name, item[name].trim() || null])) }));
  return changed.length > 0 ? { items: changed } : {};
}

/** `onChange` gets all rows as they are then. */
export function ItemRows({ items, isNew, wrong, onChange }) {
  const names = isNew ? FIELDS : CHANGEABLE;
  const change = (place, name, value) => onChange(items.map((item, other) => (other === place ? { ...item, [name]: value } : item)));
  return html`<p class="facts">${t(isNew ? "items_why" : "items_change_why")}</p>
    ${items.map(
      (item, place) => html`<fieldset key=${place} class="item-row">
        <legend>${t("item_number", { number: place + 1 })}</legend>
        ${names.map((name) => {
          const field = `items[${place}].${name}`;
          return html`<label key=${name} class="field" data-field=${field}>
            <span>${t(`field_item_${name}`)}</span>
            <input name=${field} value=${item[name]} autocomplete="off" inputmode=${{ units: "numeric", price: "decimal", image: "url" }[name] ?? "text"}
              aria-invalid=${wrong[field] ? "true" : "false"} aria-describedby=${`wrong-${field}`} onInput=${(event) => change(place, name, event.target.value)} />
            <span class="problem" id=${`wrong-${field}`} role="alert">${wrong[field] ?? ""}</span>
          </label>`;
        })}
        ${isNew && html`<button type="button" class="link" onClick=${() => onChange(items.filter((_, other) => other !== place))}>${t("remove_item", { number: place + 1 })}</button>`}
      </fieldset>`,
    )}
    ${isNew && items.length < ITEMS_MAX && html`<button type="button" class="button quiet small" data-action="add-item" onClick=${() => onChange([...items, EMPTY])}>${t("add_item")}</button>`}
    <p class="problem" role="alert">${wrong.items ?? ""}</p>`;
}

const PLACES = ["available", "queued", "unpaid", "paid", "kept", "returning", "dead"];

export function CustodyByItem({ sale, custody }) {
  if (!custody?.items) return null;
  const places = PLACES.filter((place) => place === "available" || custody[place] > 0);
  const prices = Object.fromEntries(sale.items.map((item) => [item.item_id, money(item.price_cents, sale.currency)]));
  const ownIds = Object.fromEntries(sale.items.map((item) => [item.item_id, item.external_id]));
  return html`<section aria-labelledby="custody-items-title">
    <h2 id="custody-items-title">${t("custody_by_item")}</h2>
    <div class="scroll"><table class="by-item">
      <thead><tr>
        <th scope="col">${t("item")}</th><th scope="col" class="number">${t("field_item_price")}</th><th scope="col" class="number">${t("field_units")}</th>
        ${places.map((place) => html`<th key=${place} scope="col" class="number">${t(`custody_${place}`)}</th>`)}
      </tr></thead>
      <tbody>
        ${custody.items.map(
          (item) => html`<tr key=${item.item_id}>
            <th scope="row" class="text">${item.title}${ownIds[item.item_id] && html` <code>${ownIds[item.item_id]}</code>`}</th><td class="number">${prices[item.item_id]}</td><td class="number">${count(item.total)}</td>
            ${places.map((place) => html`<td key=${place} class="number">${count(item[place])}</td>`)}
          </tr>`,
        )}
      </tbody>
    </table></div>
  </section>`;
}
