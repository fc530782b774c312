// Why an operator does something: asked with the question, sent with the request, kept on the record.

import { t } from "../i18n.js";
import { html } from "../ui.js";

/** The question with a field for the reason, which need not be given. `act` gets it, as an option of `ask`. */
export function asksWhy({ effect, act, ...question }) {
  let reason;
  const note = (event) => {
    reason = event.currentTarget.value.trim() || undefined;
  };
  const field = html`<label class="field why"><span>${t("act_why")}</span><input name="reason" maxlength="255" autocomplete="off" onInput=${note} /></label>`;
  return { ...question, effect: html`${effect}${field}`, act: () => act({ reason }) };
}
