// What everything runs on: the processes, read every second, and the servers and settings, read while the page is open.

import { base, meta } from "../facts.js";
import { count, counted, currentLanguage, t, time } from "../i18n.js";
import { Chip, Skeleton, html, useNow } from "../ui.js";
import { usePolled } from "./data.js";
import { Health } from "./health.js";
import { Nodes } from "./nodes.js";
import { said } from "./sentences.js";
import { told } from "./session.js";

const EVERY_MS = 15_000;

export function SystemView({ live, titles }) {
  const [found, problem] = usePolled("/v1/admin/system", EVERY_MS);
  const now = useNow(1000);
  return html`<div class="view system">
    <header class="view-head"><div><h1>${t("area_system")}</h1>
      ${found !== null && html`<p class="facts" data-version>seckill ${found.version} · ${t("system_read", { time: time(Date.parse(found.server_time), now) })}</p>`}</div></header>
    <${Health} live=${live} titles=${titles} now=${now} />
    <section aria-labelledby="nodes-title">
      <h2 id="nodes-title">${t("nodes")}</h2>
      <${Nodes} nodes=${live?.nodes ?? []} now=${now} />
    </section>
    ${problem !== null && html`<p class="problem" role="alert">${told(problem)}</p>`}
    ${found === null && problem === null && html`<${Skeleton} lines=${4} />`}
    ${found !== null && html`<${Servers} servers=${found.servers} /><${Settings} settings=${found.settings} />`}
  </div>`;
}

function Servers({ servers }) {
  return html`<section aria-labelledby="servers-title">
    <h2 id="servers-title">${t("servers")}</h2>
    <ul class="servers">${servers.map(
      ({ part, address, state, says, answered_ms: ms, mend, advice }) => html`<li key=${part} data-server=${part} data-server-state=${state}>
        <p><strong>${t(`server_${part}`)}</strong> <${Chip} state=${CHIPS[state]} label=${t(`server_is_${state}`)} /></p>
        <p>${said(says)}</p>
        <p class="facts"><code>${address}</code>${ms !== null && ` · ${t("server_answered", { ms: count(Math.ceil(ms)) })}`}</p>
        ${[...mend.map((text) => ["mend", text]), ...advice.map((text) => ["advice", text])].map(([kind, text]) => html`<p key=${text} class=${kind === "mend" ? "problem" : "facts"} data-note=${kind}>${said(text)}</p>`)}
      </li>`,
    )}</ul>
  </section>`;
}

// As for processes and orders: green is well, red is not.
const CHIPS = { ok: "ok", advice: "ok", mend: "dead", away: "dead" };

function Settings({ settings }) {
  const changed = settings.filter(({ value, default: usual }) => value !== usual);
  return html`<section aria-labelledby="settings-title">
    <h2 id="settings-title">${t("settings")}</h2>
    <p class="facts">${t("settings_why")}${meta("help") && html` <a href=${`${base}/help/${currentLanguage() === "zh" ? "zh-CN/" : ""}settings.html`} target="_blank" rel="noopener">${t("settings_help")}</a>`}</p>
    <${Table} name="changed" rows=${changed} />
    <details class="advanced"><summary>${counted("settings_others", settings.length - changed.length)}</summary>
      <${Table} name="others" rows=${settings.filter((each) => !changed.includes(each))} />
    </details>
  </section>`;
}

const Table = ({ name, rows }) =>
  rows.length > 0 && html`<table class="stacked settings" data-settings=${name}>
    <thead><tr><th scope="col">${t("setting")}</th><th scope="col">${t("setting_value")}</th>${name === "changed" && html`<th scope="col">${t("setting_default")}</th>`}</tr></thead>
    <tbody>${rows.map(
      ({ variable, value, default: usual, unit }) => html`<tr key=${variable}>
        <td><code>${variable}</code></td>
        <td class="text">${value === "" ? "–" : value}${value !== "" && /^[a-z]+$/.test(unit) && html` <span class="facts">${unit}</span>`}</td>
        ${name === "changed" && html`<td class="text facts">${usual === "" ? t("setting_unset") : usual}</td>`}
      </tr>`,
    )}</tbody>
  </table>`;
