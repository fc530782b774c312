// Alarms: those that last, on the first screen, and all that there were, at an address of their own.

import { base, meta } from "../facts.js";
import { count, counted, currentLanguage, t, time } from "../i18n.js";
import { Empty, html, useNow } from "../ui.js";
import { usePolled } from "./data.js";
import { Health } from "./health.js";
import { said } from "./sentences.js";
import { told } from "./session.js";

const EVERY_MS = 5_000;
const SHOWN = 5;

/** Where the handbook is part of the installation. */
const rowOf = (runbook) => `${base}/help/${currentLanguage() === "zh" ? "zh-CN/" : ""}${runbook.replace(/^docs\/(.*)\.md/, "$1.html")}`;

/** `titles`: of sales, by their ids. */
const Alarm = ({ alarm, titles, now }) => html`<li><strong>${said(alarm.what)}</strong>
  ${meta("help") && alarm.runbook && html` · <a href=${rowOf(alarm.runbook)} target="_blank" rel="noopener" data-runbook>${t("alarm_what_to_do")}</a>`}
  ${alarm.sale_id && html` · <a href=${`#/sales/${alarm.sale_id}`}>${titles[alarm.sale_id] ?? alarm.sale_id}</a>`}
  <span class="facts"> · ${t("alarm_since", { time: time(Date.parse(alarm.raised_at), now) })}${alarm.resolved_at === null ? "" : ` · ${t("alarm_until", { time: time(Date.parse(alarm.resolved_at), now) })}`}${alarm.times > 1 ? ` · ${t("alarm_times", { times: count(alarm.times) })}` : ""}</span></li>`;

export const AlarmsNow = ({ alarms, titles, now }) => html`<section class="alarms" role="alert" aria-labelledby="alarms-title">
  <h2 id="alarms-title">${counted("alarms_on", alarms.length)}</h2>
  <ul>${alarms.slice(0, SHOWN).map((alarm) => html`<${Alarm} key=${alarm.id} alarm=${alarm} titles=${titles} now=${now} />`)}</ul>
  ${alarms.length > SHOWN && html`<p class="facts"><a href="#/alarms">${t("alarms_all")}</a></p>`}
</section>`;

export function AlarmsView({ live, titles }) {
  const [found, problem] = usePolled("/v1/admin/alarms", EVERY_MS);
  const now = useNow(1000);
  const lists = [["alarms_lasting", (alarm) => alarm.on], ["alarms_past", (alarm) => !alarm.on]].map(([name, is]) => [name, found?.alarms.filter(is) ?? []]);
  return html`<div class="view">
    <h1>${t("overview_alarms")}</h1>
    <p class="facts">${t("alarms_why")}</p>
    <${Health} live=${live} titles=${titles} now=${now} />
    ${found === null && html`<p class="facts" role="status">${problem ? told(problem) : t("loading")}</p>`}
    ${found?.alarms.length === 0 && html`<${Empty} text=${t("alarms_none")} />`}
    ${lists.filter(([, alarms]) => alarms.length > 0).map(
      ([name, alarms]) => html`<section key=${name} class=${name === "alarms_lasting" ? "alarms" : "alarms past"} data-alarms=${name}><h2>${t(name)}</h2>
        <ul>${alarms.map((alarm) => html`<${Alarm} key=${alarm.id} alarm=${alarm} titles=${titles} now=${now} />`)}</ul></section>`,
    )}
  </div>`;
}
