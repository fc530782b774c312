// What is sold: pictures, price, how much is left, and what the shop says about it.

import { useEffect, useState } from "../vendor/preact/hooks.mjs";
import { Cover } from "./cover.js";
import { base } from "./facts.js";
import { count, money, t } from "./i18n.js";
import { hasSeveralPrices, priceOf } from "./items.js";
import { Markup, Outside } from "./markup.js";
import { html } from "./ui.js";

/** What was uploaded is named by its path on this server. */
const addressOf = (image) => (image.startsWith("/") ? base + image : image);

const Photo = ({ image, onMissing, ...attributes }) =>
  html`<img src=${addressOf(image)} alt="" decoding="async" referrerpolicy="no-referrer" onError=${() => onMissing(image)} ...${attributes} />`;

/** Those of its pictures that can be loaded, as far as is known, and a function that is told which cannot. */
function usePictures(sale) {
  const [missing, setMissing] = useState([]);
  const note = (image) => setMissing((known) => [...known, image]);
  return [sale.images.filter((image) => !missing.includes(image)), note];
}

/** A cover where there is none. */
export function Picture({ sale }) {
  const [[image], onMissing] = usePictures(sale);
  if (image === undefined) return html`<${Cover} title=${sale.title} />`;
  return html`<${Photo} class="cover photo" image=${image} loading="lazy" onMissing=${onMissing} />`;
}

/** One at a time, with the others below it. */
export function Gallery({ sale, item = null }) {
  const all = item?.image ? [...new Set([...sale.images, item.image])] : sale.images;
  const [images, onMissing] = usePictures({ images: all });
  const [chosen, setChosen] = useState(null);
  useEffect(() => setChosen(item?.image ?? null), [item?.item_id]);
  const shown = images.includes(chosen) ? chosen : images[0];
  const label = (index) => t("picture_of", { number: index + 1, many: images.length });
  return html`<div class="gallery">
    ${shown === undefined ? html`<${Cover} title=${sale.title} />` : html`<${Photo} class="cover photo" image=${shown} fetchpriority="high" onMissing=${onMissing} />`}
    ${images.length > 1 &&
    html`<ul class="thumbnails">
      ${images.map(
        (image, index) => html`<li key=${image}>
          <button type="button" aria-label=${label(index)} aria-pressed=${image === shown} onClick=${() => setChosen(image)}>
            <${Photo} image=${image} onMissing=${onMissing} />
          </button>
        </li>`,
      )}
    </ul>`}
  </div>`;
}

const LONG_PRICE = 13; // characters: set smaller, so that it stays on one line of a small phone

/** With what it costs otherwise, if that is more, and what is saved. Of several prices the lowest, until one item is
 * chosen. `short`: the saving in per cent, where there is little room. */
export function Price({ sale, item = null, short = false }) {
  const { list_price_cents: list, currency } = sale;
  const price = priceOf(sale, item?.item_id);
  const several = item === null && hasSeveralPrices(sale);
  const text = several ? t("from_price", { price: money(price, currency) }) : money(price, currency);
  const percent = list > price ? Math.floor((100 * (list - price)) / list) : 0;
  const saved = short ? percent > 0 && t("saving_percent", { percent: count(percent) }) : t("saving", { amount: money(list - price, currency) });
  return html`<p class=${`price${text.length > LONG_PRICE ? " long" : ""}`}>
    <span class="now">${text}</span>
    ${list > price && html` <span class="was"><span class="visually-hidden">${t("list_price")}</span> <s>${money(list, currency)}</s></span>`}
    ${list > price && !several && saved && html` <span class="saving">${saved}</span>`}
  </p>`;
}

/** How much is left, roughly: in steps, so that whoever caches the answer need not ask for each unit. */
export const Left = ({ sale }) =>
  sale.state === "open" && sale.left_percent > 0 && !sale.lined && html`<div class="left" data-left=${sale.left_percent}><span class="bar" aria-hidden="true"><span></span></span><span>${t(`left_${sale.left_percent}`)}</span></div>`;

export function Details({ sale }) {
  const { description, delivery, terms_url: terms, return_url: back } = sale;
  if (!(description || delivery || terms || back)) return null;
  return html`<section class="details" aria-label=${t("details")}>
    ${description && html`<${Markup} text=${description} />`}
    ${delivery && html`<div class="once"><h2>${t("delivery")}</h2><p class="delivery" dir="auto">${delivery}</p></div>`}
    ${(terms || back) &&
    html`<p class="links">
      ${terms && html`<${Outside} href=${terms}>${t("terms")}<//>`}
      ${back && html`<a class="once" href=${back} rel="noreferrer">${t("back_to_shop")}</a>`}
    </p>`}
  </section>`;
}
