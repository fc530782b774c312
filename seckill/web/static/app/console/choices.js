// Currencies and time zones by their names, to choose from.

import { useMemo } from "../../vendor/preact/hooks.mjs";
import { nowMs } from "../clock.js";
import { currencies, decimalsOf } from "../currencies.js";
import { counted, htmlLanguage, t, zone } from "../i18n.js";
import { html } from "../ui.js";

const USUAL = ["CNY", "USD", "EUR", "GBP", "JPY", "HKD", "TWD", "KRW", "SGD", "AUD", "CAD", "CHF", "INR"];

function nameOf(code) {
  const found = new Intl.DisplayNames([htmlLanguage()], { type: "currency", fallback: "none" }).of(code);
  return found === undefined ? code : `${code} · ${found}`;
}

const decimals = (code) => (decimalsOf(code) === 0 ? t("decimals_none") : counted("decimals", decimalsOf(code)));

/** With how it is counted: an amount in the API is in its smallest unit. */
export function CurrencyField({ value, wrong, onChange }) {
  const others = currencies().filter((code) => !USUAL.includes(code));
  const option = (code) => html`<option key=${code} value=${code}>${nameOf(code)}</option>`;
  return html`<label class="field" data-field="currency"><span>${t("field_currency")}</span>
    <select name="currency" value=${value} onChange=${onChange} aria-describedby="currency-decimals wrong-currency">
      <optgroup label=${t("currencies_usual")}>${USUAL.map(option)}</optgroup>
      <optgroup label=${t("currencies_others")}>${others.map(option)}</optgroup>
    </select>
    <span class="facts" id="currency-decimals">${decimals(value)}</span>
    <span class="problem" id="wrong-currency" role="alert">${wrong ?? ""}</span></label>`;
}

/** Of the person who fills in the form: Asia/Shanghai, GMT+8. */
export function ownZone() {
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return name === undefined || name === zone(nowMs()) ? zone(nowMs()) : `${name}, ${zone(nowMs())}`;
}

function offsetOf(timeZone) {
  const parts = new Intl.DateTimeFormat("en", { timeZone, timeZoneName: "shortOffset" }).formatToParts(nowMs());
  return parts.find((part) => part.type === "timeZoneName").value;
}

/** For the sale's zone: what begins like what was typed, with its offset now. Made once: there are hundreds, and the form
 * around it is drawn anew with every key. */
export function ZoneList() {
  return useMemo(() => {
    const names = ["UTC", ...(Intl.supportedValuesOf?.("timeZone") ?? [])];
    return html`<datalist id="zones">${names.map((name) => html`<option key=${name} value=${name}>${offsetOf(name)}</option>`)}</datalist>`;
  }, []);
}
