// Operators' keys: who has one, what it is good for, making one (it is shown once), and revoking it.

import { useState } from "../../vendor/preact/hooks.mjs";
import { nowMs } from "../clock.js";
import { dateTime, shortTime, t } from "../i18n.js";
import { Chip, Confirm, Dialog, Empty, html } from "../ui.js";
import { usePolled } from "./data.js";
import { ask, told } from "./session.js";
import { asksWhy } from "./why.js";

const PATH = "/v1/admin/operators";
const ROLES = ["viewer", "operator", "admin"];
const DAYS = [1, 30, 90, 365];
const DAY_S = 86_400;
const STATES = { active: "paid", expired: "ended", revoked: "failed" };

export function KeysView() {
  const [content, trouble, reload] = usePolled(PATH, 5_000);
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState(null);
  const [question, setQuestion] = useState(null);
  const [problem, setProblem] = useState("");
  const done = (key) => {
    setCreating(false);
    setMade(key);
    reload();
  };
  const revoke = (key) => () =>
    setQuestion(asksWhy({
      title: t("key_revoke_title", { name: key.name }),
      effect: t("key_revoke_effect"),
      yes: t("key_revoke_yes"),
      act: async ({ reason }) => {
        try {
          await ask("DELETE", `${PATH}/${key.id}`, undefined, { reason });
          setProblem("");
        } catch (error) {
          setProblem(told(error));
        }
        reload();
      },
    }));
  return html`<div class="view">
    <div class="view-head"><h1>${t("keys")}</h1>
      <button type="button" class="button primary small" onClick=${() => setCreating(true)}>${t("new_key")}</button></div>
    <p class="facts">${t("keys_why")}</p>
    <p class="problem" role="alert">${problem}</p>
    ${content === null && html`<p class="facts" role="status">${trouble ? told(trouble) : t("loading")}</p>`}
    ${content?.operators.length === 0 && html`<${Empty} text=${t("no_keys")} />`}
    ${content?.operators.map((key) => html`<${Key} key=${key.id} made=${key} onRevoke=${revoke(key)} />`)}
    <${Dialog} open=${creating} title=${t("new_key")} onClose=${() => setCreating(false)}>
      <${KeyForm} onDone=${done} onClose=${() => setCreating(false)} />
    <//>
    <${Dialog} open=${made !== null} title=${t("key_made", { name: made?.name ?? "" })} mustAnswer=${true} onClose=${() => setMade(null)}>
      <${MadeKey} made=${made} onClose=${() => setMade(null)} />
    <//>
    <${Confirm} question=${question} onClose=${() => setQuestion(null)} />
  </div>`;
}

function Key({ made, onRevoke }) {
  const created = t("key_created", { time: shortTime(Date.parse(made.created_at), nowMs()), name: made.created_by });
  const until = made.expires_at === null ? t("key_never") : t("key_until", { time: dateTime(Date.parse(made.expires_at)) });
  return html`<article class="found" data-key=${made.id}>
    <header><h2 class="text">${made.name} · ${t(`role_${made.role}`)}</h2><${Chip} state=${STATES[made.state]} label=${t(`key_${made.state}`)} /></header>
    <p class="facts">${made.id} · ${created} · ${until}</p>
    ${made.state === "active" && html`<div class="actions"><button type="button" class="button danger small" onClick=${onRevoke}>${t("key_revoke")}</button></div>`}
  </article>`;
}

function KeyForm({ onDone, onClose }) {
  const [values, setValues] = useState({ name: "", role: "operator", days: "90" });
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const change = (event) => setValues((known) => ({ ...known, [event.target.name]: event.target.value }));
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const expires = values.days === "" ? null : Number(values.days) * DAY_S;
      onDone(await ask("POST", PATH, { name: values.name, role: values.role, expires_in_s: expires }));
    } catch (error) {
      setProblem(told(error));
    } finally {
      setBusy(false);
    }
  };
  return html`<form data-form="key" onSubmit=${submit}>
    <label class="field"><span>${t("key_name")}</span>
      <input name="name" required maxlength="64" autocomplete="off" autofocus value=${values.name} onInput=${change} /></label>
    <label class="field"><span>${t("role")}</span>
      <select name="role" value=${values.role} onChange=${change}>
        ${ROLES.map((role) => html`<option key=${role} value=${role}>${t(`role_${role}`)}</option>`)}
      </select></label>
    <p class="facts">${t(`role_${values.role}_why`)}</p>
    <label class="field"><span>${t("key_expiry")}</span>
      <select name="days" value=${values.days} onChange=${change}>
        ${DAYS.map((days) => html`<option key=${days} value=${days}>${t("key_days", { days })}</option>`)}
        <option value="">${t("key_never")}</option>
      </select></label>
    <p class="problem" role="alert">${problem}</p>
    <div class="buttons">
      <button type="submit" class="button primary" disabled=${busy}>${t("key_create")}</button>
      <button type="button" class="button quiet" onClick=${onClose}>${t("back")}</button>
    </div>
  </form>`;
}

function MadeKey({ made, onClose }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(made.key);
    setCopied(true);
  };
  return html`<div>
    <p>${t("key_made_why")}</p>
    <pre class="text" data-secret>${made?.key}</pre>
    <p class="facts" role="status" aria-live="polite">${copied ? t("webhook_copied") : ""}</p>
    <div class="buttons">
      ${navigator.clipboard && html`<button type="button" class="button quiet" onClick=${copy}>${t("webhook_copy")}</button>`}
      <button type="button" class="button primary" onClick=${onClose}>${t("webhook_secret_kept")}</button>
    </div>
  </div>`;
}
