// How buyers come to the units of a new sale, as fields of its form. None of it can be changed later, but for the pace.

import { count, t } from "../i18n.js";
import { html } from "../ui.js";

export const LINE_FIELDS = ["order", "waiting_list", "serve_per_s", "beacon"];
const ORDERS = ["press", "arrival", "draw"];
const PACE_MAX = 100_000;

export function initialLine(sale) {
  const { order = "press", waiting_list = false, serve_per_s: pace, beacon = false } = sale ?? {};
  return { order, waiting_list, serve_per_s: pace == null ? "" : String(pace), beacon };
}

const isLined = ({ order, waiting_list: list }) => order !== "press" || list;

export function checkLine(values) {
  const pace = values.serve_per_s;
  const fits = pace === "" || (/^[0-9]{1,6}$/.test(pace) && Number(pace) >= 1 && Number(pace) <= PACE_MAX);
  return isLined(values) && !fits ? { serve_per_s: t("wrong_whole", { least: 1, most: count(PACE_MAX) }) } : {};
}

/** The fields, as the API wants them, in which this sale differs from one without a line. */
export function lineBody(values) {
  if (!isLined(values)) return {};
  const draws = values.order !== "press";
  return {
    order: values.order,
    ...(draws ? {} : { waiting_list: true }),
    ...(values.serve_per_s === "" ? {} : { serve_per_s: Number(values.serve_per_s) }),
    ...(draws && values.beacon ? { beacon: true } : {}),
  };
}

export function LineFields({ field, choice, choose, tick, values }) {
  return html`
    ${choice("order", ORDERS, choose)}<p class="facts">${t(`order_${values.order}_why`)}</p>
    ${values.order === "press" && tick("waiting_list")}
    ${isLined(values) && field("serve_per_s", { inputmode: "numeric" })}
    ${values.order !== "press" && tick("beacon")}`;
}
