// Why an operator does something: asked with the question, sent with the request, kept on the record.

import { t } from "../i18n.js";
import { html } from "../ui.js";

/** It need not be given. */
export function WhyField({ onReason }) {
  const note = (event) => onReason(event.currentTarget.value.trim() || undefined);
  return html`<label class="field"><span>${t("act_why")}</span><input name="reason" maxlength="255" autocomplete="off" onInput=${note} /></label>`;
}

/** The question with a field for the reason. `act` gets it, as an option of `ask`. */
export function asksWhy({ effect, act, ...question }) {
  let reason;
  const note = (given) => {
    reason = given;
  };
  return { ...question, effect: html`${effect}<${WhyField} onReason=${note} />`, act: () => act({ reason }) };
}
