// What is wrong with the running system now, before any alarm is raised: said first, wherever operators look.

import { count, has, t, time } from "../i18n.js";
import { html } from "../ui.js";

const LATE_MS = 2_000;
const TOO_LATE_MS = 10_000;

/** A second or two is normal. With more, buyers who got a unit wait for their orders. */
export const toneOf = (lagMs = 0) => (lagMs >= TOO_LATE_MS ? "red" : lagMs >= LATE_MS ? "amber" : "plain");

/** Troubles of all sales, or of one. Red if no other process does that work, or if buyers wait long for the orders that they got. */
export function troubles(live, saleId = null) {
  const nodes = live?.nodes ?? [];
  const works = new Set(nodes.filter((node) => node.state === "ok").map((node) => node.role));
  const silent = nodes
    .filter((node) => node.state !== "ok")
    .map((node) => ({ id: node.id, kind: "silent", node, tone: works.has(node.role) ? "amber" : "red" }));
  const late = (live?.sales ?? [])
    .filter((sale) => (saleId === null || sale.sale_id === saleId) && sale.lag_ms >= LATE_MS)
    .map((sale) => ({ id: sale.sale_id, kind: "late", sale, tone: toneOf(sale.lag_ms) }));
  return [...silent, ...late];
}

export const roleOf = (role) => (has(`process_${role}`) ? t(`process_${role}`) : role);

export function Health({ live, saleId = null, titles, now }) {
  const found = troubles(live, saleId);
  if (found.length === 0) return null;
  const tone = found.some((each) => each.tone === "red") ? "red" : "amber";
  return html`<section class="health" role="alert" data-tone=${tone}>
    <ul>${found.map(
      (each) => html`<li key=${each.kind + each.id} data-trouble=${each.kind} data-tone=${each.tone}><span aria-hidden="true">⚠</span> ${each.kind === "silent" ? silentText(each.node, now) : lateText(each.sale, saleId, titles)}</li>`,
    )}</ul>
  </section>`;
}

const silentText = (node, now) => html`<strong>${t("health_silent", { role: roleOf(node.role), host: node.host, pid: node.pid, time: time(Date.parse(node.seen_at), now) })}</strong> ${has(`health_silent_${node.role}`) ? t(`health_silent_${node.role}`) : ""}`;

const lateText = (sale, saleId, titles) =>
  html`<strong>${t("health_late", { time: t("seconds", { many: count(Math.round(sale.lag_ms / 1000)) }) })}</strong>${saleId === null && html` · <a href=${`#/sales/${sale.sale_id}`}>${titles?.[sale.sale_id] ?? sale.sale_id}</a>`}`;
