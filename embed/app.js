// What is shown inside of the element: the buyers' page of a sale, with nothing around it.

import { render } from "../seckill/web/static/vendor/preact/preact.mjs";
import { Offline, Refused, backoffMs, call, goToShop, holderOf, meta, sleep } from "../seckill/web/static/app/api.js";
import { keepClock } from "../seckill/web/static/app/clock.js";
import { htmlLanguage, ready } from "../seckill/web/static/app/i18n.js";
import { SalePage } from "../seckill/web/static/app/sale.js";
import { TestBanner, html } from "../seckill/web/static/app/ui.js";

keepClock();

export { Refused, backoffMs, goToShop, holderOf, meta, sleep };

/** Whether the API takes this token. Throws Offline where nobody answers. */
export async function accepts(token) {
  try {
    await call("GET", "/v1/orders?limit=1", { token });
    return true;
  } catch (error) {
    if (error instanceof Offline || error.status !== 401) throw error;
    return false;
  }
}

const shown = new Map(); // what each place is to show, as soon as there are texts

export async function show(place, { saleId, ...page }) {
  const wanted = html`<${TestBanner} /><${SalePage} key=${saleId} saleId=${saleId} ...${page} />`;
  shown.set(place, wanted);
  await ready;
  if (shown.get(place) !== wanted) return;
  place.lang = htmlLanguage();
  render(wanted, place);
}

export function clear(place) {
  shown.delete(place);
  render(null, place);
}
