// Where events are sent to: endpoints, how each is doing, its deliveries, and its secret, which is shown once.

import { useState } from "../../vendor/preact/hooks.mjs";
import { nowMs } from "../clock.js";
import { count, counted, shortTime, t } from "../i18n.js";
import { Chip, Confirm, Dialog, Empty, html } from "../ui.js";
import { usePolled } from "./data.js";
import { said } from "./sentences.js";
import { ask, may, told } from "./session.js";
import { asksWhy } from "./why.js";

const PATH = "/v1/admin/webhooks";
const TEST_WITHIN_S = 20;
const TEST_WITHIN_MS = 30_000;

export function WebhooksView({ titles }) {
  const [content, trouble, reload] = usePolled(PATH, 3_000);
  const [form, setForm] = useState(null); // {webhook}: null for a new one
  const [made, setMade] = useState(null); // with its secret
  const [question, setQuestion] = useState(null);
  const [result, setResult] = useState({ text: "", wrong: false });
  const attempt = async (act) => {
    try {
      setResult({ text: (await act()) ?? "", wrong: false });
    } catch (error) {
      setResult({ text: told(error), wrong: true });
    }
    reload();
  };
  const done = (webhook) => {
    setForm(null);
    setResult({ text: "", wrong: false });
    if (webhook.secret) setMade(webhook);
    reload();
  };
  const parts = { titles, attempt, onEdit: (webhook) => setForm({ webhook }), onSecret: setMade, onAsk: setQuestion };
  return html`<div class="view">
    <div class="view-head"><h1>${t("webhooks")}</h1>
      ${may("admin") && html`<button type="button" class="button primary small" onClick=${() => setForm({ webhook: null })}>${t("new_webhook")}</button>`}</div>
    <p class="facts">${t("webhooks_why")}</p>
    <p class=${result.wrong ? "problem" : "facts"} role="status" aria-live="polite">${result.text}</p>
    ${content === null && html`<p class="facts" role="status">${trouble ? told(trouble) : t("loading")}</p>`}
    ${content?.webhooks.length === 0 && html`<${Empty} text=${t("no_webhooks")} />`}
    ${content?.webhooks.map((webhook) => html`<${Endpoint} key=${webhook.id} webhook=${webhook} ...${parts} />`)}
    <${Dialog} open=${form !== null} title=${t(form?.webhook ? "change_webhook" : "new_webhook")} onClose=${() => setForm(null)}>
      <${WebhookForm} webhook=${form?.webhook ?? null} titles=${titles} onDone=${done} onClose=${() => setForm(null)} />
    <//>
    <${Dialog} open=${made !== null} title=${t("webhook_secret")} mustAnswer=${true} onClose=${() => setMade(null)}>
      <${Secret} webhook=${made} onClose=${() => setMade(null)} />
    <//>
    <${Confirm} question=${question} onClose=${() => setQuestion(null)} />
  </div>`;
}

function stateOf({ enabled, disabled_by: by, failing_since: since }) {
  if (!enabled) return { state: by === "operator" ? "ended" : "failed", label: t(`webhook_disabled_${by}`) };
  if (since) return { state: "queued", label: t("webhook_failing", { time: shortTime(Date.parse(since), nowMs()) }) };
  return { state: "paid", label: t("webhook_ok") };
}

function Endpoint({ webhook, titles, attempt, onEdit, onSecret, onAsk }) {
  const [shown, setShown] = useState(false);
  const [busy, setBusy] = useState(false);
  const path = `${PATH}/${webhook.id}`;
  const test = async () => {
    setBusy(true);
    await attempt(async () => {
      const sent = await ask("POST", `${path}/test?wait=${TEST_WITHIN_S}`, undefined, { withinMs: TEST_WITHIN_MS });
      return t("webhook_tested", { answer: answerOf(sent) });
    });
    setBusy(false);
  };
  const toggle = () => attempt(async () => void (await ask("PATCH", path, { enabled: !webhook.enabled })));
  const confirm = (verb, act) => () =>
    onAsk(asksWhy({
      title: t(`webhook_${verb}_title`),
      effect: t(`webhook_${verb}_effect`, { url: webhook.url }),
      yes: t(`webhook_${verb}_yes`),
      act: (options) => attempt(() => act(options)),
    }));
  const rotate = confirm("rotate", async (options) => void onSecret(await ask("POST", `${path}/rotate`, {}, options)));
  const remove = confirm("delete", async (options) => void (await ask("DELETE", path, undefined, options)));
  const filter = [webhook.types?.join(", ") ?? t("webhook_all_events"), webhook.sale_id ? (titles[webhook.sale_id] ?? webhook.sale_id) : null];
  return html`<article class="found" data-webhook=${webhook.id}>
    <header><h2 class="text">${webhook.url}</h2><${Chip} ...${stateOf(webhook)} /></header>
    <p class="facts">${[webhook.description, ...filter].filter(Boolean).join(" · ")}</p>
    <p class="facts">${figures(webhook).join(" · ")}</p>
    ${webhook.missed && html`<p class="problem">${t("webhook_missed", { after: webhook.missed.after, until: webhook.missed.until })}</p>`}
    ${may("admin") && html`<div class="actions">
      <button type="button" class="button quiet small" data-action="test" disabled=${busy} onClick=${test}>${t("webhook_test")}</button>
      <button type="button" class="button quiet small" data-action="edit" onClick=${() => onEdit(webhook)}>${t("edit")}</button>
      <button type="button" class="button quiet small" data-action="toggle" onClick=${toggle}>${t(webhook.enabled ? "webhook_disable" : "webhook_enable")}</button>
      <button type="button" class="button quiet small" data-action="rotate" onClick=${rotate}>${t("webhook_rotate")}</button>
      <button type="button" class="button danger small" data-action="delete" onClick=${remove}>${t("webhook_delete")}</button>
    </div>`}
    <details onToggle=${(event) => setShown(event.currentTarget.open)}><summary>${t("webhook_deliveries")}</summary>
      ${shown && html`<${Deliveries} path=${path} attempt=${attempt} />`}
    </details>
  </article>`;
}

function figures({ delivered_at: at, behind, waiting, failed, next_try_at: next, overlap_until: overlap }) {
  const time = (text) => shortTime(Date.parse(text), nowMs());
  return [
    at ? t("webhook_delivered_at", { time: time(at) }) : t("webhook_never"),
    behind > 0 && t("webhook_behind", { many: count(behind) }),
    waiting > 0 && t("webhook_waiting", { many: count(waiting) }),
    failed > 0 && t("webhook_failed", { many: count(failed) }),
    next && Date.parse(next) > nowMs() && t("webhook_next_try", { time: time(next) }),
    overlap && t("webhook_overlap", { time: time(overlap) }),
  ].filter(Boolean);
}

const STATES = { waiting: "queued", delivered: "paid", failed: "failed" };
const answerOf = ({ status, trouble }) => (status === null ? t(`webhook_${trouble ?? "not_tried"}`) : `HTTP ${status}`);

function Deliveries({ path, attempt }) {
  const [content, trouble, reload] = usePolled(`${path}/deliveries?limit=50`, 3_000);
  const again = (delivery) => () =>
    attempt(async () => {
      const sent = await ask("POST", `${path}/deliveries/${delivery.id}/redeliver?wait=${TEST_WITHIN_S}`, undefined, { withinMs: TEST_WITHIN_MS });
      reload();
      return t("webhook_sent_again", { answer: answerOf(sent) });
    });
  if (content === null) return html`<p class="facts" role="status">${trouble ? told(trouble) : t("loading")}</p>`;
  if (content.deliveries.length === 0) return html`<p class="facts">${t("webhook_no_deliveries")}</p>`;
  return html`<div class="scroll"><table>
    <thead><tr><th scope="col">${t("webhook_event")}</th><th scope="col">${t("state")}</th><th scope="col">${t("webhook_answer")}</th>
      <th scope="col">${t("webhook_last_try")}</th></tr></thead>
    <tbody>${content.deliveries.map(
      (delivery) => html`<tr key=${delivery.id} data-delivery=${delivery.id}>
        <td>${delivery.type}<br /><span class="facts">${delivery.event_id}</span></td>
        <td><${Chip} state=${STATES[delivery.state]} label=${t(`delivery_${delivery.state}`)} />
          ${may("admin") && html`<button type="button" class="button quiet small" onClick=${again(delivery)}>${t("webhook_send_again")}</button>`}</td>
        <td>${answerOf(delivery)}${delivery.tries > 1 ? html`<br /><span class="facts">${counted("attempts", delivery.tries)}</span>` : ""}</td>
        <td>${delivery.tried_at ? shortTime(Date.parse(delivery.tried_at), nowMs()) : "–"}</td>
      </tr>`,
    )}</tbody>
  </table></div>`;
}

function Secret({ webhook, onClose }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(webhook.secret);
    setCopied(true);
  };
  return html`<div>
    <p>${t(webhook?.overlap_until ? "webhook_secret_rotated" : "webhook_secret_why")}</p>
    <pre class="text" data-secret>${webhook?.secret}</pre>
    <p class="facts" role="status" aria-live="polite">${copied ? t("webhook_copied") : ""}</p>
    <div class="buttons">
      ${navigator.clipboard && html`<button type="button" class="button quiet" onClick=${copy}>${t("webhook_copy")}</button>`}
      <button type="button" class="button primary" onClick=${onClose}>${t("webhook_secret_kept")}</button>
    </div>
  </div>`;
}

function WebhookForm({ webhook, titles, onDone, onClose }) {
  const [values, setValues] = useState({
    url: webhook?.url ?? "",
    types: webhook?.types?.join(", ") ?? "",
    sale_id: webhook?.sale_id ?? "",
    description: webhook?.description ?? "",
  });
  const [wrong, setWrong] = useState({});
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const change = (event) => setValues((known) => ({ ...known, [event.target.name]: event.target.value }));
  const submit = async (event) => {
    event.preventDefault();
    const types = values.types.split(/[\s,，]+/).filter(Boolean);
    const body = { ...values, url: values.url.trim(), types: types.length > 0 ? types : null, sale_id: values.sale_id || null };
    setBusy(true);
    try {
      onDone(webhook === null ? await ask("POST", PATH, body) : await ask("PATCH", `${PATH}/${webhook.id}`, body));
    } catch (error) {
      const errors = error.problem?.errors ?? [];
      setWrong(Object.fromEntries(errors.map(({ field, message }) => [field.replace(/\[.*/, ""), said(message)])));
      setProblem(errors.length > 0 ? "" : told(error));
    } finally {
      setBusy(false);
    }
  };
  const field = (name, attributes = {}) => html`<label class="field" data-field=${name}><span>${t(`webhook_field_${name}`)}</span>
    <input name=${name} value=${values[name]} onInput=${change} autocomplete="off" aria-invalid=${wrong[name] ? "true" : "false"} aria-describedby=${`wrong-webhook-${name}`} ...${attributes} />
    <span class="problem" id=${`wrong-webhook-${name}`} role="alert">${wrong[name] ?? ""}</span></label>`;
  return html`<form class="webhook-form" novalidate onSubmit=${submit}>
    ${field("url", { inputmode: "url", placeholder: "https://…", autofocus: true })}
    ${field("types", { placeholder: "order.*, refund.done" })}
    <p class="facts">${t("webhook_types_why")}</p>
    <label class="field" data-field="sale_id"><span>${t("webhook_field_sale_id")}</span>
      <select name="sale_id" value=${values.sale_id} onChange=${change}>
        <option value="">${t("webhook_all_sales")}</option>
        ${Object.entries(titles).map(([id, title]) => html`<option key=${id} value=${id}>${title}</option>`)}
        ${values.sale_id && !(values.sale_id in titles) && html`<option value=${values.sale_id}>${values.sale_id}</option>`}
      </select></label>
    ${field("description", { maxlength: 200 })}
    <p class="problem" role="alert">${problem}</p>
    <div class="buttons">
      <button type="submit" class="button primary" disabled=${busy}>${t(webhook === null ? "webhook_create" : "save")}</button>
      <button type="button" class="button quiet" onClick=${onClose}>${t("back")}</button>
    </div>
  </form>`;
}
