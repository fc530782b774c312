// The auditor's verdict, where there is an auditor.

import { dateTime, has, t } from "../i18n.js";
import { html } from "../ui.js";
import { usePolled } from "./data.js";

const EVERY_MS = 5_000;

export function useAudit(abilities) {
  const [audit, problem] = usePolled(abilities?.audit ? "/v1/admin/audit" : null, EVERY_MS);
  return { audit, problem, available: abilities?.audit ?? null };
}

const SIGNS = { holds: "✓", broken: "✕", unknown: "?" };
const named = (verdict) => (has(`verdict_${verdict}`) ? t(`verdict_${verdict}`) : verdict);

/** For the head of a page: one word, and the way to more. */
export function Verdict({ audit, problem, available }) {
  if (available === null) return null;
  const verdict = !available ? "absent" : problem || audit === null ? "unknown" : audit.verdict;
  return html`<a class="verdict" data-verdict=${verdict} href="#/audit">
    <span aria-hidden="true">${SIGNS[verdict] ?? ""}</span> ${t("audit")}: ${!available ? t("audit_absent") : named(verdict)}
  </a>`;
}

export function AuditView({ audit, problem, available }) {
  const download = () => {
    const url = URL.createObjectURL(new Blob([JSON.stringify(audit, null, 2)], { type: "application/json" }));
    const link = Object.assign(document.createElement("a"), { href: url, download: "audit.json" });
    link.click();
    URL.revokeObjectURL(url);
  };
  return html`<div class="view">
    <h1>${t("audit")}</h1>
    ${available === false && html`<p class="empty">${t("audit_absent_text")}</p>`}
    ${available && audit === null && html`<p class="facts" role="status">${problem ? problem.message : t("loading")}</p>`}
    ${audit !== null &&
    html`<div role="status" aria-live="polite"><p class="headline" data-verdict=${audit.verdict}><span aria-hidden="true">${SIGNS[audit.verdict] ?? ""}</span> ${named(audit.verdict)}</p></div>
      <p class="facts">${audit.at && dateTime(Date.parse(audit.at))}</p>
      <div class="actions"><button type="button" class="button quiet small" onClick=${download}>${t("download")}</button></div>
      <div class="scroll"><table>
        <thead><tr><th scope="col">${t("invariant")}</th><th scope="col">${t("verdict")}</th><th scope="col">${t("checked")}</th></tr></thead>
        <tbody>${(audit.invariants ?? []).map((one) => html`<${Invariant} key=${one.name} one=${one} />`)}</tbody>
      </table></div>`}
  </div>`;
}

function Invariant({ one }) {
  return html`<tr>
    <td><strong>${one.name}</strong><br /><span class="facts">${one.says}</span>
      ${(one.findings ?? []).map(
        (finding, index) => html`<p key=${index} class="problem">
          ${finding.says} ${finding.order_id && html`<a href=${`#/orders/${finding.order_id}`}>${finding.order_id}</a>`} ${finding.user ?? ""}
        </p>`,
      )}
      ${(one.reasons ?? []).map((reason) => html`<p key=${reason} class="facts">${reason}</p>`)}
    </td>
    <td data-verdict=${one.verdict}><span aria-hidden="true">${SIGNS[one.verdict] ?? ""}</span> ${named(one.verdict)}</td>
    <td class="text">${one.checked}</td>
  </tr>`;
}
