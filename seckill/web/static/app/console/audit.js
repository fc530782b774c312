// The auditor's verdict, and mending what it has found.

import { useState } from "../../vendor/preact/hooks.mjs";
import { count, dateTime, has, readable, sentences, t } from "../i18n.js";
import { Confirm, Empty, coded, html } from "../ui.js";
import { usePolled } from "./data.js";
import { said } from "./sentences.js";
import { ask, told } from "./session.js";
import { asksWhy } from "./why.js";

const EVERY_MS = 5_000;
// Every order is compared, and a gate may have to be rebuilt.
const WITHIN_MS = 10 * 60_000;

/** `available` is false where nothing can be audited, and null until that is known. */
export function useAudit() {
  const [audit, problem] = usePolled("/v1/admin/audit", EVERY_MS);
  const available = problem?.code === "not_available" ? false : audit === null && problem === null ? null : true;
  return { audit, problem, available };
}

const SIGNS = { holds: "✓", broken: "✕", unknown: "?" };
const named = (verdict) => (has(`verdict_${verdict}`) ? t(`verdict_${verdict}`) : verdict);

/** For the head of a page: one word, and the way to more. */
export function Verdict({ audit, problem, available }) {
  if (available === null) return null;
  const verdict = !available ? "absent" : problem || audit === null ? "unknown" : audit.verdict;
  return html`<a class="verdict" data-verdict=${verdict} href="#/audit">
    <span aria-hidden="true">${SIGNS[verdict] ?? ""}</span> ${has(`audit_is_${verdict}`) ? t(`audit_is_${verdict}`) : verdict}
  </a>`;
}

function download(content, name) {
  const url = URL.createObjectURL(new Blob([JSON.stringify(content, null, 2)], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}

export function AuditView({ audit: latest, problem, available, sales }) {
  const [own, setOwn] = useState(null); // what this page has asked for, until the next reading is newer
  const [busy, setBusy] = useState("");
  const [trouble, setTrouble] = useState("");
  const [repair, setRepair] = useState(null);
  const [question, setQuestion] = useState(null);
  const audit = own !== null && (latest === null || own.at > latest.at) ? own : latest;
  const run = async (what, action) => {
    setBusy(what);
    setTrouble("");
    try {
      await action();
    } catch (error) {
      setTrouble(told(error));
    } finally {
      setBusy("");
    }
  };
  const audited = () => run("audit", async () => setOwn(await ask("GET", "/v1/admin/audit?full=true", undefined, { withinMs: WITHIN_MS })));
  const mend = (apply) => ({ reason }) =>
    run(apply ? "mend" : "plan", async () => {
      const answer = await ask("POST", "/v1/admin/repair", { apply }, { withinMs: WITHIN_MS, reason });
      setRepair({ ...answer, applied: apply });
      setOwn(answer.audit);
    });
  const confirm = () =>
    setQuestion(asksWhy({ title: t("mend_title"), effect: t("mend_effect"), yes: t("mend_yes"), act: mend(true) }));
  if (available === false) return html`<div class="view"><h1>${t("audit")}</h1><${Empty} text=${t("audit_absent_text")} /></div>`;
  if (audit === null) {
    return html`<div class="view"><h1>${t("audit")}</h1><p class="facts" role="status">${problem ? told(problem) : t("loading")}</p></div>`;
  }
  const broken = audit.invariants.filter((one) => one.verdict !== "holds");
  return html`<div class="view">
    <header class="view-head">
      <div>
        <h1>${t("audit")}</h1>
        <p class="facts">${sentences(t("audit_at", { time: dateTime(Date.parse(audit.at)) }), audit.orders_compared_at && t("audit_compared_at", { time: dateTime(Date.parse(audit.orders_compared_at)) }))}</p>
      </div>
      <p class="headline" role="status" data-verdict=${audit.verdict}><span aria-hidden="true">${SIGNS[audit.verdict] ?? ""}</span> ${named(audit.verdict)}</p>
    </header>
    <div class="actions">
      <button type="button" class="button quiet small" disabled=${busy !== ""} onClick=${audited}>${busy === "audit" ? t("auditing") : t("audit_now")}</button>
      <button type="button" class="button quiet small" onClick=${() => download(audit, "audit.json")}>${t("download")}</button>
    </div>
    ${broken.length > 0 && html`<${Invariants} title=${t("not_holding")} rows=${broken} sales=${sales} />`}
    <section aria-labelledby="repair-title">
      <h2 id="repair-title">${t("repair")}</h2>
      <p class="facts">${t("repair_why")}</p>
      <p class="problem" role="alert">${trouble}</p>
      ${repair !== null && html`<${Plan} repair=${repair} />`}
      <div class="actions">
        <button type="button" class="button quiet small" disabled=${busy !== ""} onClick=${mend(false)}>${busy === "plan" ? t("auditing") : t("repair_look")}</button>
        ${repair?.to_do.length > 0 && html`<button type="button" class="button danger small" disabled=${busy !== ""} onClick=${confirm}>${busy === "mend" ? t("mending") : t("repair_apply")}</button>`}
        ${repair !== null && html`<button type="button" class="button quiet small" onClick=${() => download(repair, "repair.json")}>${t("download")}</button>`}
      </div>
    </section>
    <${Invariants} title=${t("all_invariants")} rows=${audit.invariants.filter((one) => one.verdict === "holds")} sales=${sales} />
    <${Confirm} question=${question} onClose=${() => setQuestion(null)} />
  </div>`;
}

function Plan({ repair }) {
  const lists = [
    ["repair_done", repair.done],
    ["repair_to_do", repair.to_do],
    ["repair_for_people", repair.for_people],
  ].filter(([, steps]) => steps.length > 0);
  if (lists.length === 0) return html`<p class="result" role="status">${t("repair_nothing")}</p>`;
  return html`<div class="plan" role="status">
    ${lists.map(([name, steps]) => html`<div key=${name} data-plan=${name}><h3>${t(name)}</h3><ol>${steps.map((says, index) => html`<li key=${index} class="text">${coded(said(says))}</li>`)}</ol></div>`)}
  </div>`;
}

function Invariants({ title, rows, sales }) {
  if (rows.length === 0) return null;
  return html`<section>
    <h2>${title}</h2>
    <div class="scroll" tabindex="0" role="group" aria-label=${title}><table class="stacked">
      <thead><tr><th scope="col">${t("invariant")}</th><th scope="col">${t("verdict")}</th><th scope="col">${t("checked")}</th></tr></thead>
      <tbody>${rows.map((one) => html`<${Invariant} key=${one.name} one=${one} sales=${sales} />`)}</tbody>
    </table></div>
  </section>`;
}

function Invariant({ one, sales }) {
  return html`<tr>
    <td class="text">${said(one.says)} <code class="facts">${one.name}</code>
      ${one.findings.length > 0 && html`<ul class="findings">${one.findings.map((finding, index) => html`<li key=${index}><${Finding} finding=${finding} sales=${sales} /></li>`)}</ul>`}
      ${one.found > one.findings.length && html`<p class="facts">${t("more_findings", { many: count(one.found - one.findings.length) })}</p>`}
      ${one.reasons.map((reason) => html`<p key=${reason} class="facts">${said(reason)}</p>`)}
    </td>
    <td data-verdict=${one.verdict}><span aria-hidden="true">${SIGNS[one.verdict] ?? ""}</span> ${named(one.verdict)}</td>
    <td class="text">${said(one.checked)}</td>
  </tr>`;
}

/** What is wrong, and links to the sale, order and buyer that it is about. */
function Finding({ finding: { says, round, sale_id: sale, order_id: order, user }, sales }) {
  const known = (sales ?? []).find((one) => one.id === sale);
  const place = known && (known.repeat ? `${known.title}, ${t("round_id", { round })}` : known.title);
  return html`${order && html`<a href=${`#/orders/${order}`}>${readable(order)}</a> `}
    ${user && html`<a href=${`#/orders/${encodeURIComponent(user)}`}>${user}</a> `}
    ${round && (sale ? html`<a href=${`#/sales/${sale}`}>${place ?? t("round_id", { round })}</a> ` : `${t("round_id", { round })} `)}
    <span class="problem">${said(says)}</span>`;
}
