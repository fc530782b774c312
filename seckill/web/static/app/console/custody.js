// Where every unit of a sale is.

import { count, counted, shortDuration, t } from "../i18n.js";
import { html } from "../ui.js";

const PLACES = ["available", "queued", "unpaid", "paid", "kept", "returning", "dead"];

export function CustodyBar({ custody, now }) {
  if (custody === null) return html`<div class="custody"><div class="bar" aria-hidden="true"></div><p class="facts">${t("loading")}</p></div>`;
  const returns = custody.next_return_at && custody.unpaid > 0 ? Date.parse(custody.next_return_at) - now : null;
  return html`<section class="custody" aria-labelledby="custody-title">
    <h2 id="custody-title">${counted("custody", custody.total)}</h2>
    <div class="bar" aria-hidden="true">
      ${PLACES.filter((place) => custody[place] > 0).map(
        (place) => html`<div key=${place} class="segment" data-place=${place} style=${{ flexGrow: String(custody[place]) }}></div>`,
      )}
    </div>
    <dl class="legend">
      ${PLACES.map(
        (place) => html`<div key=${place} data-place=${place}>
          <dt><span class="swatch" data-place=${place} aria-hidden="true"></span>${t(`custody_${place}`)}</dt>
          <dd>${count(custody[place])}</dd>
          ${place === "unpaid" && returns !== null && html`<dd class="facts">${t("next_return", { time: shortDuration(returns) })}</dd>`}
        </div>`,
      )}
    </dl>
  </section>`;
}
