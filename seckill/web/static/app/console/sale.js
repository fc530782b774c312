// One sale, live: what can be done with it, where its units are, how fast it goes, and its newest orders.

import { useMemo, useRef, useState } from "../../vendor/preact/hooks.mjs";
import { base } from "../api.js";
import { count, counted, money, period, readable, shortDuration, stock, t, time } from "../i18n.js";
import { hasSeveralPrices } from "../items.js";
import { Chip, Confirm, Dialog, html, useNow } from "../ui.js";
import { Charts, around, wholeOf } from "./charts.js";
import { Health, toneOf } from "./health.js";
import { CustodyBar } from "./custody.js";
import { usePolled } from "./data.js";
import { AudienceUpload } from "./door.js";
import { AddUnits, SaleForm } from "./form.js";
import { CustodyByItem } from "./items.js";
import { LineView, hasLine } from "./line.js";
import { OwnFacts } from "./own_facts.js";
import { NextRounds } from "./repetition.js";
import { Vouchers } from "./vouchers.js";
import { SetUp, ShareLink } from "./set_up.js";
import { LIVE_SPANS } from "./sale_history.js";
import { ask, may, told } from "./session.js";
import { stateOf } from "./states.js";
import { Summary } from "./summary.js";
import { Timeline, gathered } from "./timeline.js";
import { asksWhy } from "./why.js";

const CUSTODY_EVERY_MS = 700; // with the answer's way, whatever moves is seen within a second
const ORDERS_EVERY_MS = 2_000;
const LOOKING_BACK_EVERY_MS = 3_000;
const NONE = [];

export function SaleView({ sale, isNew, live, samples, verdict, onChanged }) {
  const now = useNow(250);
  const [custody] = usePolled(`/v1/sales/${sale.id}/custody`, CUSTODY_EVERY_MS);
  const [found] = usePolled(`/v1/admin/orders?sale_id=${sale.id}&limit=10`, ORDERS_EVERY_MS);
  const [summary] = usePolled(`/v1/admin/sales/${sale.id}/summary`, LOOKING_BACK_EVERY_MS);
  const [happened] = usePolled(`/v1/admin/sales/${sale.id}/timeline`, LOOKING_BACK_EVERY_MS);
  const figures = live?.sales.find((one) => one.sale_id === sale.id);
  const [range, setRange] = useState(() => (sale.state === "ended" ? wholeOf(sale) : { spanS: LIVE_SPANS["5m"] }));
  const entries = useMemo(() => (happened === null ? null : gathered(happened.entries)), [happened]);
  const marks = useMemo(() => entries?.map(({ at, kind }) => ({ atS: Date.parse(at) / 1000, kind })) ?? NONE, [entries]);
  const charts = useRef();
  // Before the first press there is nothing to draw or count, so the set-up is shown instead.
  const nothingYet = ["scheduled", "draft"].includes(stateOf(sale)) && (summary?.conversion.presses ?? 0) === 0 && (summary?.conversion.orders ?? 0) === 0;
  const showMoment = (atS) => {
    setRange(around(atS));
    charts.current?.scrollIntoView({ block: "nearest" });
  };
  return html`<div class="view">
    <header class="view-head">
      <div>
        <h1 dir="auto">${sale.title}</h1>
        <p class="facts">
          <${Chip} state=${stateOf(sale)} label=${t(`sale_${stateOf(sale)}`)} /> ${sale.published ? "" : `${t("hidden")} · `}${hasSeveralPrices(sale) ? t("from_price", { price: money(sale.price_cents, sale.currency) }) : money(sale.price_cents, sale.currency)} ·
          ${" "}${stock(sale)} ·${sale.lanes > 1 ? ` ${t("lanes_of_sale", { lanes: count(sale.lanes) })} ·` : ""}
          ${" "}${period(sale, now)}${sale.state !== "ended" && html` · <${When} sale=${sale} now=${now} />`}
        </p>
      </div>
      ${verdict}
    </header>
    <${Health} live=${live} saleId=${sale.id} now=${now} />
    ${isNew && html`<p class="notice" role="status" data-made>${t(sale.published ? "made_public" : "made_draft")} ${sale.published && html`<${ShareLink} sale=${sale} />`}</p>`}
    ${may("operator") && html`<${Actions} sale=${sale} onChanged=${onChanged} />`}
    <${OwnFacts} ids=${{ own_id: sale.external_id }} metadata=${sale.metadata} />
    <${CustodyBar} custody=${custody} now=${now} />
    ${sale.items && html`<${CustodyByItem} sale=${sale} custody=${custody} />`}
    ${hasLine(sale) && html`<${LineView} sale=${sale} />`}
    ${sale.repeat && html`<${NextRounds} sale=${sale} now=${now} />`}
    ${sale.vouchers && html`<${Vouchers} key=${sale.id} sale=${sale} onChanged=${onChanged} />`}
    ${nothingYet && html`<${SetUp} sale=${sale} />`}
    ${!nothingYet && html`<${Summary} summary=${summary} over=${sale.state === "ended"} isOn=${sale.state === "open"} repeats=${sale.repeat !== null} inLine=${sale.order !== "press"} now=${now} />`}
    ${live !== null && figures === undefined ? html`<p class="facts">${t("no_figures")}</p>` : !nothingYet && html`<${Stats} figures=${figures} answers=${live?.answers} />`}
    <div ref=${charts} hidden=${nothingYet}><${Charts} sale=${sale} samples=${samples} marks=${marks} soldOutAt=${summary?.sold_out_at} withLine=${hasLine(sale)} range=${range} onRange=${setRange} /></div>
    <${Timeline} sale=${sale} entries=${entries} now=${now} onMoment=${showMoment} />
    ${!nothingYet && html`<div class="columns">
      <section aria-labelledby="refusals-title">
        <h2 id="refusals-title">${t("refusals")}</h2>
        <${Refusals} refused=${live === null ? null : (figures?.refused ?? {})} />
      </section>
      <section aria-labelledby="orders-title">
        <h2 id="orders-title">${t("newest_orders")}</h2>
        <${NewestOrders} orders=${found?.orders ?? null} now=${now} />
        ${found?.orders.length > 0 && html`<p class="facts"><a href=${`#/orders//${sale.id}`}>${t("all_orders_of_sale")}</a></p>`}
      </section>
    </div>`}
    ${live !== null && html`<p class="facts" data-nodes>${counted("nodes_running", live.nodes.length)} · <a href="#/system">${t("area_system")}</a></p>`}
  </div>`;
}

function When({ sale, now }) {
  const begins = Date.parse(sale.begins_at) - now;
  if (begins > 0) return t("begins_in", { time: shortDuration(begins) });
  return t("ends_in", { time: shortDuration(Date.parse(sale.ends_at) - now) });
}

function Actions({ sale, onChanged }) {
  const [question, setQuestion] = useState(null);
  const [open, setOpen] = useState(null);
  const [problem, setProblem] = useState("");
  const change = (method, path, body) => async ({ reason }) => {
    try {
      setProblem("");
      await ask(method, `/v1/sales/${sale.id}${path}`, body, { reason });
      onChanged();
    } catch (error) {
      setProblem(told(error));
    }
  };
  const act = (verb) => change("POST", `/${verb}`);
  const show = (published) => change("PATCH", "", { published });
  const confirm = (verb) => () =>
    setQuestion(asksWhy({ title: t(`${verb}_title`), effect: t(`${verb}_effect`), yes: t(`${verb}_yes`), act: act(verb) }));
  const done = () => {
    setOpen(null);
    onChanged();
  };
  const duplicated = (made) => {
    done();
    location.hash = `#/sales/${made.id}`;
  };
  const over = sale.state === "ended";
  const askToHide = () => setQuestion(asksWhy({ title: t("hide_title"), effect: t("hide_effect"), yes: t("hide_yes"), act: show(false) }));
  return html`<div class="actions">
    ${!sale.published && html`<button type="button" class="button primary small" onClick=${show(true)}>${t("publish")}</button>`}
    ${!sale.published || sale.waits_for_codes
      ? null
      : sale.state === "paused"
      ? html`<button type="button" class="button primary small" onClick=${act("resume")}>${t("resume")}</button>`
      : html`<button type="button" class="button quiet small" disabled=${over} onClick=${confirm("pause")}>${t("pause")}</button>`}
    <button type="button" class="button quiet small" disabled=${over} onClick=${() => setOpen("add")}>${t("add_units")}</button>
    <button type="button" class="button quiet small" disabled=${over} onClick=${() => setOpen("edit")}>${t("edit")}</button>
    <button type="button" class="button quiet small" onClick=${() => setOpen("duplicate")}>${t("duplicate")}</button>
    ${sale.audience?.list && html`<button type="button" class="button quiet small" onClick=${() => setOpen("audience")}>${t("audience_upload")}</button>`}
    ${sale.published && html`<button type="button" class="button quiet small" onClick=${askToHide}>${t("hide")}</button>`}
    <button type="button" class="button danger small" disabled=${over} onClick=${confirm("close")}>${t("close")}</button>
    ${sale.published && html`<a class="link" href=${`${base}/sales/${sale.id}`} target="_blank" rel="noopener">${t("buyers_page")}</a>`}
    <p class="problem" role="alert">${problem}</p>
    <${Confirm} question=${question} onClose=${() => setQuestion(null)} />
    <${Dialog} open=${open === "add"} title=${t("add_units")} onClose=${() => setOpen(null)}>
      <${AddUnits} sale=${sale} onDone=${done} onClose=${() => setOpen(null)} />
    <//>
    <${Dialog} open=${open === "audience"} title=${t("audience_upload")} onClose=${() => setOpen(null)}>
      <${AudienceUpload} sale=${sale} onDone=${onChanged} onClose=${() => setOpen(null)} />
    <//>
    <${Dialog} open=${open === "duplicate"} title=${t("new_sale")} onClose=${() => setOpen(null)}>
      <${SaleForm} like=${sale} onDone=${duplicated} onClose=${() => setOpen(null)} />
    <//>
    <${Dialog} open=${open === "edit"} title=${t("edit")} onClose=${() => setOpen(null)}>
      <${SaleForm} sale=${sale} onDone=${done} onClose=${() => setOpen(null)} />
    <//>
  </div>`;
}

const Loading = () => html`<p class="facts">${t("loading")}</p>`;

function Stats({ figures, answers }) {
  const stats = [
    ["accepted_units", figures?.accepted_units],
    ["persisted_units", figures?.persisted_units],
    ["backlog", figures?.backlog],
    ["lag", figures && t("milliseconds", { ms: count(figures.lag_ms) })],
    ["p99", answers?.p99_ms == null ? undefined : t("milliseconds", { ms: answers.p99_ms })],
  ];
  return html`<dl class="stats">
    ${stats.map(([name, value]) => html`<div key=${name} data-stat=${name} data-tone=${name === "lag" ? toneOf(figures?.lag_ms) : "plain"}><dt>${t(`stat_${name}`)}</dt><dd>${value == null ? "–" : typeof value === "number" ? count(value) : value}</dd></div>`)}
  </dl>`;
}

function Refusals({ refused }) {
  if (refused === null) return html`<${Loading} />`;
  const rows = Object.entries(refused).sort((one, other) => other[1] - one[1]);
  if (rows.length === 0) return html`<p class="facts">${t("no_refusals")}</p>`;
  return html`<table>
    <thead><tr><th scope="col">${t("reason")}</th><th scope="col" class="number">${t("claims")}</th></tr></thead>
    <tbody>${rows.map(([reason, many]) => html`<tr key=${reason}><td>${t(`reason_${reason}`)}</td><td class="number">${count(many)}</td></tr>`)}</tbody>
  </table>`;
}

function NewestOrders({ orders, now }) {
  if (orders === null) return html`<${Loading} />`;
  if (orders.length === 0) return html`<p class="facts">${t("no_orders_of_sale")}</p>`;
  return html`<div class="scroll"><table class="pairs">
    <thead><tr><th scope="col">${t("order")}</th><th scope="col">${t("buyer")}</th><th scope="col">${t("state")}</th><th scope="col">${t("at")}</th></tr></thead>
    <tbody>
      ${orders.map(
        ({ order, buyer }) => html`<tr key=${order?.order_id}>
          <td><a href=${`#/orders/${order?.order_id}`}>${readable(order?.order_id ?? "")}</a></td>
          <td class="text">${buyer}${order?.item_title ? ` · ${order.item_title}` : ""}</td>
          <td><${Chip} state=${order?.state} label=${t(`order_${order?.state}`)} /></td>
          <td>${time(Date.parse(order?.created_at), now)}</td>
        </tr>`,
      )}
    </tbody>
  </table></div>`;
}
