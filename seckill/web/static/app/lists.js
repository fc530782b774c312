// The list of sales and the list of one's orders.

import { useEffect, useState } from "../vendor/preact/hooks.mjs";
import { Refused, backoffMs, base, call } from "./api.js";
import { firstSales } from "./first.js";
import { Left, Picture, Price } from "./goods.js";
import { isClosedEarly, money, parts, readable, roughDuration, shortDuration, shortTime, stock, t, time, unspaced } from "./i18n.js";
import { Chip, Empty, SignInFirst, Skeleton, html, useNow, useRepeated } from "./ui.js";

const REFRESH_MS = 5_000;
const GROUPS = ["open", "coming", "resting", "over"];
const SEARCHED_FROM = 12; // sales: fewer are seen at a glance
const ENDS_FIRST = (one, other) => one.ends_at.localeCompare(other.ends_at);
const ORDERS = {
  open: ENDS_FIRST,
  coming: (one, other) => one.begins_at.localeCompare(other.begins_at),
  resting: ENDS_FIRST,
  over: (one, other) => other.ends_at.localeCompare(one.ends_at),
};

export function SalesPage() {
  const [listed, setListed] = useState(firstSales);
  const [past, setPast] = useState({ sales: [], older: undefined });
  const [away, setAway] = useState(false);
  const [wanted, setWanted] = useState({ text: "", group: "" });
  const now = useNow(1000);
  useRepeated(async (isOver) => {
    try {
      const answer = await call("GET", "/v1/sales", { cache: "default" });
      if (!isOver()) setListed(answer);
      setAway(false);
    } catch {
      setAway(true);
    }
    return REFRESH_MS * (0.8 + 0.4 * Math.random());
  }, []);
  useEffect(() => {
    document.title = t("sales");
  });
  const sales = listed && merged(listed.sales, past.sales, (sale) => sale.id);
  const older = past.older === undefined ? listed?.older : past.older;
  const more = async () => {
    const earlier = await call("GET", `/v1/sales?before=${encodeURIComponent(older)}`).catch(() => null);
    if (earlier !== null) setPast({ sales: [...past.sales, ...earlier.sales], older: earlier.older });
    setAway(earlier === null);
  };
  const isSearched = sales !== null && Math.max(sales.length, listed.many ?? 0) >= SEARCHED_FROM;
  const found = isSearched ? sales.filter((sale) => isWanted(sale, wanted)) : (sales ?? []);
  return html`<h1>${t("sales")}</h1>
    ${away && html`<p class="notice" role="status">${t("offline")}</p>`}
    ${sales === null && !away && html`<${Skeleton} lines=${4} />`}
    ${sales?.length === 0 && html`<${Empty} text=${t("no_sales")} />`}
    ${isSearched && html`<${Search} wanted=${wanted} groups=${GROUPS.filter((group) => sales.some((sale) => groupOf(sale) === group))} onChange=${setWanted} />`}
    ${isSearched && found.length === 0 && html`<${Empty} text=${t("no_match")}><button type="button" class="button quiet" onClick=${() => setWanted({ text: "", group: "" })}>${t("clear_search")}</button><//>`}
    ${GROUPS.map((group) => {
      const members = found.filter((sale) => groupOf(sale) === group).sort(ORDERS[group]);
      return (
        members.length > 0 &&
        html`<section key=${group} aria-labelledby=${`group-${group}`}>
          <h2 id=${`group-${group}`}>${t(`group_${group}`)}</h2>
          <ul class="cards">
            ${members.map((sale) => html`<li key=${sale.id}><${SaleCard} sale=${sale} now=${now} /></li>`)}
          </ul>
        </section>`
      );
    })}
    ${older && html`<button type="button" class="button quiet" onClick=${more}>${t("older_sales")}</button>`}`;
}

const groupOf = ({ state }) => ({ open: "open", scheduled: "coming", ended: "over" })[state] ?? "resting";

/** As people type: whatever the case, and whether wide or narrow. */
const plain = (text) => text.normalize("NFKC").toLowerCase().trim();

const isWanted = (sale, { text, group }) => (group === "" || groupOf(sale) === group) && plain(sale.title).includes(plain(text));

function Search({ wanted, groups, onChange }) {
  const choose = (group) => onChange({ ...wanted, group });
  return html`<div class="search" role="search">
    <input type="search" name="search" aria-label=${t("search_sales")} placeholder=${t("search_sales")} autocomplete="off" value=${wanted.text} onInput=${(event) => onChange({ ...wanted, text: event.target.value })} />
    <div class="filters" role="group" aria-label=${t("show")}>
      ${["", ...groups].map((group) => html`<button key=${group} type="button" class="filter" aria-pressed=${wanted.group === group} onClick=${() => choose(group)}>${t(group === "" ? "filter_all" : `group_${group}`)}</button>`)}
    </div>
  </div>`;
}

function SaleCard({ sale, now }) {
  return html`<a class="card" href=${`${base}/sales/${sale.id}`} data-state=${sale.state}>
    <${Picture} sale=${sale} />
    <div class="card-text">
      <h3 dir="auto">${sale.title}</h3>
      <${Price} sale=${sale} short=${true} />
      <${Left} sale=${sale} />
      <p class="facts">${stock(sale)}</p>
      <p class="when">${when(sale, now)}</p>
    </div>
  </a>`;
}

/** Nobody counts seconds for a month; and minutes alone would be taken for hours beside others. */
function untilThen(ms) {
  const [days, ...hands] = parts(ms);
  return days > 0 ? roughDuration(ms) : hands.join(":");
}

function when(sale, now) {
  const begins = Date.parse(sale.begins_at);
  const ends = Date.parse(sale.ends_at);
  if (sale.state === "scheduled") return unspaced(t("begins_in", { time: untilThen(begins - now) }));
  if (sale.state === "open") return unspaced(t("ends_in", { time: untilThen(ends - now) }));
  if (isClosedEarly(sale, now)) return t("closed_early");
  if (sale.state === "ended") return t("ended_at", { time: time(ends, now) });
  return html`<${Chip} state=${sale.state} label=${t(`sale_${sale.state}`)} />`;
}

export function OrdersPage({ me, onSignIn, onSignedOut }) {
  const [orders, setOrders] = useState(null);
  const [titles, setTitles] = useState({});
  const [next, setNext] = useState(null);
  const [problem, setProblem] = useState("");
  const now = useNow(1000);
  useEffect(() => {
    document.title = t("my_orders");
  });
  useRepeated(
    async (isOver) => {
      if (!me) return Infinity;
      try {
        const [mine, all] = await Promise.all([
          call("GET", "/v1/orders", { token: me.token }),
          call("GET", "/v1/sales", { cache: "default" }),
        ]);
        if (isOver()) return Infinity;
        setTitles((known) => ({ ...known, ...titlesOf(all.sales) }));
        setOrders((known) => merged(mine.orders, known ?? [], orderId));
        setNext((known) => (known === null ? mine.next : known));
        setProblem("");
      } catch (error) {
        if (error instanceof Refused && error.status === 401) return onSignedOut();
        setProblem(t("offline"));
        return backoffMs(3);
      }
      return REFRESH_MS;
    },
    [me?.token],
  );
  // Of a sale that was over long ago, which the list of sales leaves out.
  const untitled = (orders ?? []).map((order) => order.sale_id).find((id) => !(id in titles));
  useRepeated(
    async (isOver) => {
      if (untitled === undefined) return Infinity;
      try {
        const sale = await call("GET", `/v1/sales/${untitled}`, { cache: "default" });
        if (!isOver()) setTitles((known) => ({ ...known, [untitled]: sale.title }));
        return Infinity;
      } catch {
        return backoffMs(4);
      }
    },
    [untitled],
  );
  const more = async () => {
    try {
      const page = await call("GET", `/v1/orders?cursor=${next}`, { token: me.token });
      setOrders((known) => merged(known, page.orders, orderId));
      setNext(page.next ?? "");
    } catch (error) {
      if (error.status === 401) onSignedOut();
      else setProblem(t("offline"));
    }
  };
  if (!me) {
    return html`<h1>${t("my_orders")}</h1><${SignInFirst} text=${t("sign_in_to_see_orders")} onSignIn=${onSignIn} />`;
  }
  return html`<h1>${t("my_orders")}</h1>
    ${problem && html`<p class="notice" role="status">${problem}</p>`}
    ${orders === null && !problem && html`<${Skeleton} lines=${4} />`}
    ${orders?.length === 0 && html`<${Empty} text=${t("no_orders")}><a class="button quiet" href=${`${base}/`}>${t("all_sales")}</a><//>`}
    <ul class="orders">
      ${(orders ?? []).map((order) => html`<li key=${order.order_id}><${OrderRow} order=${order} title=${titles[order.sale_id]} now=${now} /></li>`)}
    </ul>
    ${next && html`<button type="button" class="button quiet" onClick=${more}>${t("older_orders")}</button>`}`;
}

const orderId = (order) => order.order_id;
const titlesOf = (sales) => Object.fromEntries(sales.map((sale) => [sale.id, sale.title]));

/** The first list is newer. */
function merged(newer, older, idOf) {
  const seen = new Set(newer.map(idOf));
  return [...newer, ...older.filter((one) => !seen.has(idOf(one)))];
}

function OrderRow({ order, title, now }) {
  const left = order.pay_before && Date.parse(order.pay_before) - now;
  return html`<a class="order-row" href=${`${base}/orders/${order.order_id}`}>
    <span class="order-title" dir="auto">${title ?? t("a_sale")}${order.item_title ? ` · ${order.item_title}` : ""}${order.quantity > 1 ? ` × ${order.quantity}` : ""}</span>
    <span class="order-price">${money(order.price_cents, order.currency)}</span>
    <span class="order-number">${readable(order.order_id)}</span>
    <span class="order-time">${shortTime(Date.parse(order.created_at), now)}</span>
    <span class="order-state">
      <${Chip} state=${order.state} label=${t(order.state === "paid" && order.price_cents === 0 ? "order_free" : `order_${order.state}`)} />
      ${left > 0 && html`<span class="remaining">${shortDuration(left)}</span>`}
    </span>
  </a>`;
}
