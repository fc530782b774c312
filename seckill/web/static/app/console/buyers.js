// Buyers who may not buy.

import { useState } from "../../vendor/preact/hooks.mjs";
import { nowMs } from "../clock.js";
import { shortTime, t } from "../i18n.js";
import { Empty, html } from "../ui.js";
import { usePolled } from "./data.js";
import { ask, may, told } from "./session.js";

const PATH = "/v1/admin/buyers";
const DONE = { block: "buyer_blocked", unblock: "buyer_unblocked", "end-tokens": "buyer_tokens_ended" };

export function BuyersView() {
  const [content, trouble, reload] = usePolled(`${PATH}?limit=100`, 5_000);
  const [values, setValues] = useState({ buyer: "", reason: "" });
  const [result, setResult] = useState({ text: "", wrong: false });
  const [busy, setBusy] = useState(false);
  const change = (event) => setValues((known) => ({ ...known, [event.target.name]: event.target.value }));
  const act = async (verb, buyer, reason) => {
    setBusy(true);
    try {
      await ask("POST", `${PATH}/${verb}`, { buyer, reason });
      setResult({ text: t(DONE[verb], { buyer }), wrong: false });
      setValues({ buyer: "", reason: "" });
    } catch (error) {
      setResult({ text: told(error), wrong: true });
    } finally {
      setBusy(false);
    }
    reload();
  };
  const submit = (event) => {
    event.preventDefault();
    act(event.submitter?.value ?? "block", values.buyer.trim(), values.reason);
  };
  return html`<div class="view">
    <h1>${t("buyers")}</h1>
    <p class="facts">${t("buyers_why")}</p>
    ${may("operator") && html`<form class="filters" data-form="block" onSubmit=${submit}>
      <label class="field"><span>${t("buyer_id")}</span>
        <input name="buyer" required maxlength="128" autocomplete="off" value=${values.buyer} onInput=${change} /></label>
      <label class="field"><span>${t("buyer_reason")}</span>
        <input name="reason" required maxlength="255" autocomplete="off" value=${values.reason} onInput=${change} /></label>
      <button type="submit" value="block" class="button danger" disabled=${busy}>${t("buyer_block")}</button>
      <button type="submit" value="unblock" class="button quiet" disabled=${busy}>${t("buyer_unblock")}</button>
      <button type="submit" value="end-tokens" class="button quiet" disabled=${busy}>${t("buyer_end_tokens")}</button>
    </form>`}
    <p class=${result.wrong ? "problem" : "facts"} role="status" aria-live="polite">${result.text}</p>
    ${content === null && html`<p class="facts" role="status">${trouble ? told(trouble) : t("loading")}</p>`}
    ${content?.buyers.length === 0 && html`<${Empty} text=${t("buyers_none")} />`}
    ${content?.buyers.map(
      (one) => html`<article class="found" key=${one.buyer} data-buyer=${one.buyer}>
        <header><h2 class="text">${one.buyer}</h2></header>
        <p class="text">${one.reason}</p>
        <p class="facts">${t("buyer_blocked_facts", { time: shortTime(Date.parse(one.blocked_at), nowMs()), name: one.blocked_by ?? "–" })}</p>
      </article>`,
    )}
  </div>`;
}
