// All orders, or those that fit, newest first: page by page, and as a whole in a file.

import { useEffect, useRef, useState } from "../../vendor/preact/hooks.mjs";
import { nowMs } from "../clock.js";
import { count, money, readable, t, time } from "../i18n.js";
import { Chip, Empty, Skeleton, html } from "../ui.js";
import { ask, download, told } from "./session.js";

const PATH = "/v1/admin/orders";
const PAGE = 20;
const STATES = ["unpaid", "paid", "cancelled", "expired", "failed", "refunded"];
const FORMATS = ["csv", "jsonl"];

/** What was chosen, as the API wants it. */
function query({ sale_id, item_id, state, buyer, since, until }) {
  const instant = (local) => (local === "" ? "" : new Date(local).toISOString());
  const wanted = { sale_id, item_id, state, buyer: buyer.trim(), since: instant(since), until: instant(until) };
  return new URLSearchParams(Object.entries(wanted).filter(([, value]) => value !== "")).toString();
}

/** `saleId`: of this sale at first; empty: of all. */
export function OrderList({ saleId, sales, titles }) {
  const [values, setValues] = useState({ sale_id: saleId, item_id: "", state: "", buyer: "", since: "", until: "" });
  const [wanted, setWanted] = useState(query(values));
  const [found, setFound] = useState(null); // {orders, next}
  const [problem, setProblem] = useState("");
  const asked = useRef(0);
  const read = async (after) => {
    const mine = ++asked.current;
    try {
      const page = await ask("GET", `${PATH}?${wanted}&limit=${PAGE}${after ? `&after=${after}` : ""}`);
      if (mine !== asked.current) return; // something else is wanted by now
      setFound((known) => ({ orders: [...(after ? known.orders : []), ...page.orders], next: page.next ?? null }));
      setProblem("");
    } catch (error) {
      if (mine === asked.current) setProblem(told(error));
    }
  };
  useEffect(() => {
    setFound(null);
    read(null);
  }, [wanted]);
  const submit = (event) => {
    event.preventDefault();
    const chosen = query(values);
    if (chosen === wanted) read(null);
    else setWanted(chosen);
  };
  // Items are of one sale.
  const change = ({ target: { name, value } }) => setValues({ ...values, ...(name === "sale_id" ? { item_id: "" } : {}), [name]: value });
  const items = sales.find(({ id }) => id === values.sale_id)?.items ?? [];
  return html`<${Filters} values=${values} titles=${titles} items=${items} onChange=${change} onSubmit=${submit} />
    <p class="problem" role="alert">${problem}</p>
    ${found === null && problem === "" && html`<${Skeleton} lines=${4} />`}
    ${found?.orders.length === 0 && html`<${Empty} text=${t("no_order_fits")} />`}
    ${found !== null && found.orders.length > 0 && html`<section><${Orders} orders=${found.orders} titles=${titles} />
      ${found.next !== null && html`<button type="button" class="button quiet small" data-action="more" onClick=${() => read(found.next)}>${t("more_orders")}</button>`}
    </section><${Export} wanted=${wanted} />`}`;
}

function Filters({ values, titles, items, onChange, onSubmit }) {
  const sales = Object.entries(titles);
  // One that is not listed any more, and has orders all the same.
  if (values.sale_id !== "" && !(values.sale_id in titles)) sales.push([values.sale_id, values.sale_id]);
  const choice = (name, none, choices) => html`<label class="field"><span>${t(`filter_${name.replace("_id", "")}`)}</span>
    <select name=${name} value=${values[name]} onChange=${onChange}>
      <option value="">${none}</option>
      ${choices.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}
    </select></label>`;
  const field = (name, attributes) => html`<label class="field"><span>${t(`filter_${name}`)}</span>
    <input name=${name} value=${values[name]} autocomplete="off" onInput=${onChange} ...${attributes} /></label>`;
  return html`<form class="filters" onSubmit=${onSubmit}>
    ${choice("sale_id", t("all_sales"), sales)}
    ${items.length > 0 && choice("item_id", t("all_items"), items.map((item) => [item.item_id, item.title]))}
    ${choice("state", t("all_states"), STATES.map((state) => [state, t(`order_${state}`)]))}
    <button type="submit" class="button quiet">${t("filter_show")}</button>
    <details class="more-filters"><summary>${t("filter_more")}</summary><div>
      ${field("buyer", { maxlength: 128 })}
      ${field("since", { type: "datetime-local", step: 1 })}
      ${field("until", { type: "datetime-local", step: 1 })}
    </div></details>
  </form>`;
}

function Orders({ orders, titles }) {
  const now = nowMs();
  return html`<div class="scroll"><table class="pairs" data-list="orders">
    <thead><tr>${["order", "buyer", "filter_sale", "price_paid", "state", "at"].map((name) => html`<th key=${name} scope="col">${t(name)}</th>`)}</tr></thead>
    <tbody>
      ${orders.map(
        ({ order, buyer }) => html`<tr key=${order.order_id}>
          <td><a href=${`#/orders/${order.order_id}`}>${readable(order.order_id)}</a></td>
          <td class="text">${buyer}</td>
          <td class="text"><span class="clamped" title=${titles[order.sale_id]}>${titles[order.sale_id] ?? order.sale_id}${order.item_title ? ` · ${order.item_title}` : ""}${order.quantity > 1 ? ` ×\u00a0${count(order.quantity)}` : ""}</span></td>
          <td>${money(order.price_cents, order.currency)}</td>
          <td><${Chip} state=${order.state} label=${t(`order_${order.state}`)} /></td>
          <td>${time(Date.parse(order.created_at), now)}</td>
        </tr>`,
      )}
    </tbody>
  </table></div>`;
}

function Export({ wanted }) {
  const [said, setSaid] = useState({ text: "", wrong: false });
  const [busy, setBusy] = useState(false);
  const save = (format) => async () => {
    setBusy(true);
    setSaid({ text: t("export_running"), wrong: false });
    try {
      await download(`${PATH}.${format}?${wanted}`, `orders.${format}`);
      setSaid({ text: t("export_done"), wrong: false });
    } catch (error) {
      setSaid({ text: told(error), wrong: true });
    } finally {
      setBusy(false);
    }
  };
  return html`<div class="export">
    <p class="facts">${t("export_why")}</p>
    <div class="actions">
      ${FORMATS.map((format) => html`<button key=${format} type="button" class="button quiet small" disabled=${busy} data-export=${format} onClick=${save(format)}>${t(`export_${format}`)}</button>`)}
    </div>
    <p class=${said.wrong ? "problem" : "facts"} role="status">${said.text}</p>
  </div>`;
}
