// What happened to a sale: starts, sell-outs, returns, changes and by whom, alarms. Each moment can be seen in the charts.

import { count, exactTime, has, t, time } from "../i18n.js";
import { html } from "../ui.js";
import { Change, labelOf } from "./record.js";
import { said } from "./sentences.js";

const SHOWN = 12;

const nameOf = (kind) => `happened_${kind.replace(".", "_")}`;

function sentence({ kind, facts }) {
  if (!has(nameOf(kind))) return labelOf(kind);
  const values = Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, typeof value === "number" ? count(value) : said(String(value))]));
  return t(nameOf(kind), values);
}

const TONES = { "alarm.raised": "dead", "stock.sold_out": "dead", "stock.returned": "returning", "stock.resold": "returning", "round.began": "open", "sale.paused": "paused", "round.fenced": "dead" };

const isStock = ({ kind }) => kind.startsWith("stock.");

/** Newest first. Units that come back one by one and go at once are one story, and not a hundred lines. */
export function gathered(entries) {
  const found = [];
  for (let start = 0; start < entries.length; ) {
    let end = start;
    while (end < entries.length && isStock(entries[end])) end += 1;
    const run = entries.slice(start, end);
    if (run.length > 3) {
      const first = run.at(-1);
      const rest = first.kind === "stock.sold_out" ? run.slice(0, -1) : run;
      const times = rest.filter(({ kind }) => kind === "stock.returned").length;
      found.push({ ...rest[0], kind: "stock.resold", facts: { times } }, ...(rest === run ? [] : [first]));
    } else {
      found.push(...(run.length > 0 ? run : [entries[start]]));
    }
    start = Math.max(end, start + 1);
  }
  return found;
}

export function Timeline({ sale, entries, now, onMoment }) {
  return html`<section aria-labelledby="timeline-title" data-record>
    <h2 id="timeline-title">${t("timeline")}</h2>
    ${entries === null && html`<p class="facts">${t("loading")}</p>`}
    ${entries !== null && entries.length === 0 && html`<p class="facts">${t("timeline_none")}</p>`}
    <ol class="timeline">${(entries ?? []).slice(0, SHOWN).map((entry) => html`<${Moment} key=${entry.at + entry.kind} entry=${entry} now=${now} onMoment=${onMoment} />`)}</ol>
    ${entries?.length > SHOWN &&
    html`<details><summary>${t("more_orders")}</summary>
      <ol class="timeline">${entries.slice(SHOWN).map((entry) => html`<${Moment} key=${entry.at + entry.kind} entry=${entry} now=${now} onMoment=${onMoment} />`)}</ol></details>`}
    <p class="facts"><a href=${`#/record/${sale.id}`}>${t("record_all_of_sale")}</a></p>
  </section>`;
}

function Moment({ entry, now, onMoment }) {
  const at = Date.parse(entry.at);
  return html`<li data-what=${entry.kind} data-tone=${TONES[entry.kind] ?? "plain"}>
    <button type="button" class="link moment" title=${t("timeline_show")} onClick=${() => onMoment(at / 1000)}><time datetime=${entry.at}>${at % 1000 === 0 ? time(at, now) : exactTime(at, now)}</time></button>
    <span class="dot" aria-hidden="true"></span>
    <div>
      <p>${entry.who === null ? sentence(entry) : html`<strong>${entry.who}</strong> ${labelOf(entry.kind, entry)}`}</p>
      ${entry.why && html`<p class="text">${t("record_reason", { why: entry.why })}</p>`}
      <${Change} before=${entry.before ?? {}} after=${entry.after ?? {}} />
    </div>
  </li>`;
}
