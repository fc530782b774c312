// What an operator does to an order: cancel it while it is unpaid, refund it once it is paid.

import { useState } from "../../vendor/preact/hooks.mjs";
import { minorUnits } from "../currencies.js";
import { money, t } from "../i18n.js";
import { newKey } from "../press.js";
import { Dialog, html } from "../ui.js";
import { ask, may, told } from "./session.js";

export function OrderActions({ order, onChange }) {
  const [open, setOpen] = useState(false);
  const verb = { unpaid: "cancel", paid: "refund" }[order.state];
  if (!verb || !may("operator")) return null;
  return html`<div class="actions">
    <button type="button" class="button quiet small" data-action=${verb} onClick=${() => setOpen(true)}>${t(`act_${verb}`)}</button>
    <${Dialog} open=${open} title=${t(`act_${verb}_title`)} onClose=${() => setOpen(false)}>
      <${ActionForm} verb=${verb} order=${order} onClose=${() => setOpen(false)} onDone=${onChange} />
    <//>
  </div>`;
}

function ActionForm({ verb, order, onClose, onDone }) {
  // One key for one question: pressed again after a lost answer, it is done once.
  const [key] = useState(newKey);
  const [values, setValues] = useState({ reason: "", amount: "", back: true });
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const left = order.price_cents - order.refunded_cents;
  const change = (name) => (event) => setValues({ ...values, [name]: name === "back" ? event.target.checked : event.target.value });
  const submit = async (event) => {
    event.preventDefault();
    const body = { reason: values.reason };
    if (verb === "refund") body.return_unit = values.back;
    if (verb === "refund" && values.amount.trim() !== "") {
      body.amount_cents = minorUnits(values.amount.trim(), order.currency);
      if (body.amount_cents === null) return setProblem(t("act_amount_wrong"));
    }
    setBusy(true);
    try {
      await ask("POST", `/v1/admin/orders/${order.order_id}/${verb}`, body, { key });
      onClose();
      onDone();
    } catch (error) {
      setProblem(told(error));
    } finally {
      setBusy(false);
    }
  };
  return html`<form data-form=${verb} onSubmit=${submit}>
    <p>${left === 0 ? t("act_take_back_effect") : t(`act_${verb}_effect`, { left: money(left, order.currency) })}</p>
    ${verb === "refund" && left > 0 && html`<label class="field"><span>${t("act_amount")}</span>
      <input name="amount" inputmode="decimal" autocomplete="off" value=${values.amount} onInput=${change("amount")} /></label>`}
    ${verb === "refund" && html`<label class="check"><input type="checkbox" name="back" checked=${values.back} onChange=${change("back")} /> ${t("act_return_unit")}</label>`}
    <label class="field"><span>${t("act_reason")}</span>
      <input name="reason" required maxlength="255" autocomplete="off" value=${values.reason} onInput=${change("reason")} /></label>
    <p class="problem" role="alert">${problem}</p>
    <div class="buttons">
      <button type="submit" class="button danger" disabled=${busy}>${t(`act_${verb}_yes`)}</button>
      <button type="button" class="button quiet" onClick=${onClose}>${t("back")}</button>
    </div>
  </form>`;
}
