// The first screen: how all sales stand, what they have taken, and what is wrong.

import { useEffect, useRef, useState } from "../../vendor/preact/hooks.mjs";
import { count, counted, money, period, t } from "../i18n.js";
import { Chip, Empty, html, useNow } from "../ui.js";
import { AlarmsNow } from "./alarms.js";
import { amount } from "./amounts.js";
import { usePolled } from "./data.js";
import { Health, troubles } from "./health.js";
import { may } from "./session.js";
import { stateOf } from "./states.js";

const EVERY_MS = 3_000;
const STOPPED = ["sold_out", "paused"];
const GROUPS = {
  all: () => true,
  on: (sale) => stateOf(sale) === "open",
  stopped: (sale) => STOPPED.includes(stateOf(sale)),
  to_come: (sale) => stateOf(sale) === "scheduled",
  draft: (sale) => stateOf(sale) === "draft",
  over: (sale) => stateOf(sale) === "ended",
};
const ALWAYS = ["all", "on", "to_come", "over"];

export function Overview({ sales, live, rates, onCreate, showOlder }) {
  const [found] = usePolled("/v1/admin/overview", EVERY_MS);
  const [wanted, setWanted] = useState("");
  const [group, setGroup] = useState("all");
  const now = useNow(1000);
  const search = useRef();
  useEffect(() => {
    const keys = (event) => {
      if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      search.current?.focus();
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  const standing = new Map((found?.sales ?? []).map((one) => [one.sale_id, one]));
  const alarmed = (sale) => (standing.get(sale.id)?.alarms ?? 0) > 0;
  const groups = { ...GROUPS, alarmed };
  const text = wanted.trim().toLowerCase();
  const fits = (sale) => text === "" || [sale.title, sale.id, sale.external_id ?? ""].some((each) => each.toLowerCase().includes(text));
  const shown = sales.filter((sale) => groups[group](sale) && fits(sale));
  const titles = Object.fromEntries(sales.map((sale) => [sale.id, sale.title]));
  return html`<div class="view overview">
    <header class="view-head"><h1>${t("overview")}</h1></header>
    <${Health} live=${live} titles=${titles} now=${now} />
    <${Figures} sales=${sales} found=${found} rates=${rates} live=${live} />
    ${found?.alarms.length > 0 && html`<${AlarmsNow} alarms=${found.alarms} titles=${titles} now=${now} />`}
    <div class="overview-find">
      <label class="field"><span class="visually-hidden">${t("find_sale")}</span>
        <input ref=${search} name="find" type="search" autocomplete="off" placeholder=${t("find_sale")} value=${wanted} onInput=${(event) => setWanted(event.target.value)} /></label>
      <div class="ranges" role="group" aria-label=${t("filter_state")}>
        ${Object.entries(groups).map(([name, is]) => {
          const many = sales.filter(is).length;
          return (ALWAYS.includes(name) || many > 0) && html`<button key=${name} type="button" class="pill" data-group=${name} aria-pressed=${group === name ? "true" : "false"} onClick=${() => setGroup(name)}>${t(`show_${name}`)} <span class="facts">${count(many)}</span></button>`;
        })}
      </div>
    </div>
    ${sales.length === 0 && html`<${Empty} text=${t("no_sales_yet")}>${may("operator") && html`<button type="button" class="button primary" onClick=${onCreate}>${t("new_sale")}</button>`}<//>`}
    ${sales.length > 0 && shown.length === 0 && html`<${Empty} text=${t("overview_none_fits")} />`}
    ${shown.length > 0 && html`<section class="overview-list"><table class="sales-table">
      <thead><tr><th scope="col">${t("column_sale")}</th><th scope="col">${t("state")}</th><th scope="col">${t("column_sold")}</th><th scope="col" class="number">${t("column_left")}</th><th scope="col" class="number">${t("column_revenue")}</th><th scope="col" class="number">${t("column_rate")}</th></tr></thead>
      <tbody onKeyDown=${moveAmongRows}>${shown.map((sale) => html`<${Row} key=${sale.id} sale=${sale} standing=${standing.get(sale.id)} rate=${rates.get(sale.id)} now=${now} />`)}</tbody>
    </table></section>`}
    ${showOlder && html`<button type="button" class="button quiet small" onClick=${showOlder}>${t("older_sales")}</button>`}
  </div>`;
}

/** Up and down go from sale to sale, as in every list. */
function moveAmongRows(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  const links = [...event.currentTarget.querySelectorAll("a")];
  const next = links[links.indexOf(document.activeElement) + step];
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
}

function Figures({ sales, found, rates, live }) {
  const takings = new Map();
  for (const { currency, net_cents: cents } of found?.sales ?? []) if (cents) takings.set(currency, (takings.get(currency) ?? 0) + cents);
  const alarms = (found?.alarms.length ?? 0) + troubles(live).length;
  const total = [...rates.values()].reduce((sum, rate) => sum + rate, 0);
  const stats = [
    ["on", count(sales.filter(GROUPS.on).length)],
    ["rate", t("a_second", { many: shownRate(total) })],
    ["revenue", takings.size === 0 ? "–" : [...takings].map(([currency, cents]) => html`<span key=${currency} class="takings">${money(cents, currency)}</span>`), takings.size > 1],
    ["alarms", found === null ? "–" : html`<a href="#/alarms">${count(alarms)}</a>`],
  ];
  return html`<dl class="stats">
    ${stats.map(([name, value, long = false]) => html`<div key=${name} data-figure=${name} data-bad=${name === "alarms" && alarms > 0 ? "true" : "false"} title=${name === "revenue" ? t("overview_revenue_why") : undefined}><dt>${t(`overview_${name}`)}</dt><dd class=${long ? "long" : ""}>${value}</dd></div>`)}
  </dl>`;
}

const shownRate = (rate) => (rate > 0 && rate < 10 ? rate.toFixed(1) : count(Math.round(rate)));

function Row({ sale, standing, rate, now }) {
  const sold = standing?.sold_units;
  const paid = standing?.paid_units == null ? null : Math.min(standing.paid_units, sold); // null: not counted
  const share = (units) => ({ width: `${units === undefined || sale.units === 0 ? 0 : (100 * units) / sale.units}%` });
  return html`<tr data-sale=${sale.id}>
    <th scope="row"><a href=${`#/sales/${sale.id}`} dir="auto">${sale.title}</a>
      <span class="facts">${period(sale, now)}</span>
      ${standing?.alarms > 0 && html`<span class="alarm-note">${counted("alarms_on", standing.alarms)}</span>`}</th>
    <td data-cell="state"><${Chip} state=${stateOf(sale)} label=${t(`sale_${stateOf(sale)}`)} /></td>
    <td data-cell="sold"><span class="track" aria-hidden="true"><span class="done" style=${share(paid ?? sold)}></span><span class="reserved" style=${share(paid === null ? 0 : sold - paid)}></span></span>
      ${sold === undefined ? "–" : paid === null ? t("sold_of", { sold: count(sold), units: count(sale.units) }) : t("paid_of", { paid: count(paid), units: count(sale.units) })}
      ${paid !== null && sold > paid && html`<span class="facts">${t("reserved", { many: count(sold - paid) })}</span>`}</td>
    <td class="number" data-cell="left" data-label=${t("column_left")}>${standing?.available == null ? "–" : count(standing.available)}</td>
    <td class="number" data-cell="revenue" data-label=${t("column_revenue")}>${standing?.net_cents == null ? "–" : amount(standing.net_cents, standing.currency)}</td>
    <td class="number" data-cell="rate" data-label=${t("column_rate")}>${!rate ? "–" : t("a_second", { many: shownRate(rate) })}</td>
  </tr>`;
}
