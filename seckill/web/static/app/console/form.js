// Announcing a sale, and changing one. What is wrong is said at its field, and nothing that was typed is lost.

import { useEffect, useRef, useState } from "../../vendor/preact/hooks.mjs";
import { nowMs } from "../clock.js";
import { currencies, decimalsOf, isCurrency, minorUnits } from "../currencies.js";
import { count, t } from "../i18n.js";
import { html, useNow } from "../ui.js";
import { Preview, useWindows } from "./repetition.js";
import { said } from "./sentences.js";
import { ask, told } from "./session.js";

const UNITS_MAX = 1_000_000_000;
const LIMIT_MAX = 1_000;
const LANES_MAX = 256;
const COOL_DOWN_S_MAX = 3_600;
const TITLE_MAX = 200;
const MINUTE_MS = 60_000;

/** A time as the field wants it, in the operator's own time zone. */
function local(ms) {
  const at = new Date(ms - new Date(ms).getTimezoneOffset() * MINUTE_MS);
  return at.toISOString().slice(0, 19);
}

function initial(sale) {
  if (sale === null) {
    const begins = Math.ceil((nowMs() + MINUTE_MS) / MINUTE_MS) * MINUTE_MS;
    return {
      title: "",
      units: "100",
      limit_per_buyer: "1",
      price: "",
      currency: "CNY",
      begins_at: local(begins),
      ends_at: local(begins + 60 * MINUTE_MS),
      pay_within: "15",
      repetition: "once",
      repeat: "",
      cool_down_s: "5",
      lanes: "1",
      timezone: Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC",
    };
  }
  return {
    title: sale.title,
    limit_per_buyer: String(sale.limit_per_buyer),
    cool_down_s: String(sale.cool_down_s),
    begins_at: local(Date.parse(sale.begins_at)),
    ends_at: local(Date.parse(sale.ends_at)),
  };
}

const isWhole = (text, least, most) => /^[0-9]{1,10}$/.test(text) && Number(text) >= least && Number(text) <= most;

/** Field → what is wrong with it. */
function check(values, isNew) {
  const wrong = {};
  const begins = Date.parse(values.begins_at);
  const ends = Date.parse(values.ends_at);
  if (values.title.trim() === "") wrong.title = t("wrong_title_empty");
  if ([...values.title].length > TITLE_MAX) wrong.title = t("wrong_title_long", { most: TITLE_MAX });
  if (!isWhole(values.limit_per_buyer, 1, LIMIT_MAX)) wrong.limit_per_buyer = t("wrong_whole", { least: 1, most: count(LIMIT_MAX) });
  if (!isWhole(values.cool_down_s, 0, COOL_DOWN_S_MAX)) wrong.cool_down_s = t("wrong_whole", { least: 0, most: count(COOL_DOWN_S_MAX) });
  if (Number.isNaN(begins)) wrong.begins_at = t("wrong_time");
  if (Number.isNaN(ends)) wrong.ends_at = t("wrong_time");
  else if (ends <= begins) wrong.ends_at = t("wrong_end_before_begin");
  else if (isNew && ends <= nowMs()) wrong.ends_at = t("wrong_end_over");
  if (!isNew) return wrong;
  if (!isWhole(values.units, 1, UNITS_MAX)) wrong.units = t("wrong_whole", { least: 1, most: count(UNITS_MAX) });
  if (!isCurrency(values.currency)) wrong.currency = t("wrong_currency");
  else if (price(values) === null) wrong.price = wrongPrice(values);
  if (!isWhole(values.pay_within, 1, 43_200)) wrong.pay_within = t("wrong_whole", { least: 1, most: count(43_200) });
  if (!isWhole(values.lanes, 1, LANES_MAX)) wrong.lanes = t("wrong_whole", { least: 1, most: LANES_MAX });
  if (values.repetition === "cron" && values.repeat.trim() === "") wrong.repeat = t("wrong_cron_empty");
  return wrong;
}

function wrongPrice({ currency }) {
  const decimals = decimalsOf(currency);
  return decimals === 0 ? t("wrong_price_whole", { currency }) : t("wrong_price", { exact: (99.5).toFixed(decimals) });
}

const price = ({ price: typed, currency }) => minorUnits(typed.trim() || "0", currency);

/** How it comes again, as the API wants it; null for a sale that does not. */
function repeated({ repetition, repeat, timezone }) {
  if (repetition === "once") return null;
  return { repeat: repetition === "daily" ? "daily" : repeat.trim(), timezone: timezone.trim() };
}

/** What the server can tell the next rounds of; null while something is missing. */
function toPreview(values) {
  const [begins, ends] = [Date.parse(values.begins_at), Date.parse(values.ends_at)];
  const again = repeated(values);
  if (again === null || again.repeat === "" || !(ends > begins)) return null;
  return { ...again, begins_at: new Date(begins).toISOString(), ends_at: new Date(ends).toISOString() };
}

function body(values, sale) {
  const times = { begins_at: new Date(values.begins_at).toISOString(), ends_at: new Date(values.ends_at).toISOString() };
  const common = {
    title: values.title.trim(),
    limit_per_buyer: Number(values.limit_per_buyer),
    cool_down_s: Number(values.cool_down_s),
  };
  if (sale !== null) return { ...common, ...onlyMoved(times, sale) };
  return {
    ...common,
    ...times,
    ...repeated(values),
    units: Number(values.units),
    price_cents: price(values),
    currency: values.currency,
    pay_within_s: Number(values.pay_within) * 60,
    lanes: Number(values.lanes),
  };
}

/** A sale that has begun cannot begin at another time, not even at the same one to the second. */
function onlyMoved(times, sale) {
  const moved = Object.entries(times).filter(([name, time]) => Math.abs(Date.parse(time) - Date.parse(sale[name])) >= 1000);
  return Object.fromEntries(moved);
}

const FIELDS = { price_cents: "price", pay_within_s: "pay_within" };
const byField = (errors) => Object.fromEntries(errors.map(({ field, message }) => [FIELDS[field] ?? field, said(message)]));
const REPETITIONS = ["once", "daily", "cron"];

export function SaleForm({ sale = null, onDone, onClose }) {
  const [values, setValues] = useState(() => initial(sale));
  const [wrong, setWrong] = useState({});
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const form = useRef();
  const now = useNow(1000);
  const wanted = sale === null ? toPreview(values) : null;
  const windows = useWindows(wanted, (errors) => {
    const { repeat, timezone, ends_at } = byField(errors);
    setWrong((known) => ({ ...known, repeat, timezone, ends_at }));
  });
  const point = (found) => form.current?.querySelector(`[name="${Object.keys(found)[0]}"]`)?.focus();
  const submit = async (event) => {
    event.preventDefault();
    const found = check(values, sale === null);
    // What the server has said of the repetition stands until it says otherwise.
    setWrong(({ repeat, timezone }) => ({ repeat, timezone, ...found }));
    setProblem("");
    if (Object.keys(found).length > 0) return point(found);
    setBusy(true);
    try {
      const path = sale === null ? "/v1/sales" : `/v1/sales/${sale.id}`;
      onDone(await ask(sale === null ? "POST" : "PATCH", path, body(values, sale)));
    } catch (error) {
      const errors = byField(error.problem?.errors ?? []);
      setWrong(errors);
      if (Object.keys(errors).length === 0) setProblem(told(error));
      else point(errors);
    } finally {
      setBusy(false);
    }
    return undefined;
  };
  const field = (name, attributes = {}) => html`<${Field}
    name=${name} value=${values[name]} wrong=${wrong[name]} attributes=${attributes}
    onInput=${(event) => setValues((known) => ({ ...known, [name]: event.target.value }))} />`;
  const choose = (event) => {
    setValues((known) => ({ ...known, repetition: event.target.value }));
    setWrong((known) => ({ ...known, repeat: undefined, timezone: undefined }));
  };
  const repeats = values.repetition !== "once";
  return html`<form class="sale-form" ref=${form} novalidate onSubmit=${submit}>
    ${sale?.repeat && html`<p class="facts">${t("edit_repeating")}</p>`}
    ${field("title", { autofocus: true })}
    ${sale === null && field("units", { inputmode: "numeric" })}
    ${field("limit_per_buyer", { inputmode: "numeric" })}
    ${sale === null && field("price", { inputmode: "decimal", placeholder: (0).toFixed(decimalsOf(values.currency)) })}
    ${sale === null && field("currency", { maxlength: 3, list: "currencies" })}
    ${sale === null && html`<datalist id="currencies">${currencies().map((code) => html`<option key=${code} value=${code} />`)}</datalist>`}
    ${field("begins_at", { type: "datetime-local", step: 1 })}
    ${field("ends_at", { type: "datetime-local", step: 1 })}
    ${sale === null && field("pay_within", { inputmode: "numeric" })}
    ${sale === null && html`<label class="field" data-field="repetition"><span>${t("field_repetition")}</span>
      <select name="repetition" value=${values.repetition} onChange=${choose}>
        ${REPETITIONS.map((kind) => html`<option key=${kind} value=${kind}>${t(`repetition_${kind}`)}</option>`)}
      </select></label>`}
    ${sale === null && values.repetition === "cron" && field("repeat", { placeholder: "0 10 * * MON-FRI" })}
    ${sale === null && repeats && field("timezone")}
    ${sale === null && values.repetition === "daily" && wrong.repeat && html`<p class="problem" role="alert">${wrong.repeat}</p>`}
    <${Preview} wanted=${wanted} windows=${windows} now=${now} />
    <${Advanced} open=${wrong.lanes !== undefined || wrong.cool_down_s !== undefined}>
      ${field("cool_down_s", { inputmode: "numeric" })}<p class="facts">${t("cool_down_why")}</p>
      ${sale === null && html`${field("lanes", { inputmode: "numeric" })}<p class="facts">${t("lanes_why")}</p>`}
    <//>
    <p class="problem" role="alert">${problem}</p>
    <div class="buttons">
      <button type="submit" class="button primary" disabled=${busy}>${t(sale === null ? "announce" : "save")}</button>
      <button type="button" class="button quiet" onClick=${onClose}>${t("back")}</button>
    </div>
  </form>`;
}

/** What hardly anybody needs; open where something in it is wrong. */
function Advanced({ open, children }) {
  const element = useRef();
  useEffect(() => {
    if (open) element.current.open = true;
  }, [open]);
  return html`<details ref=${element} class="advanced"><summary>${t("advanced")}</summary>${children}</details>`;
}

function Field({ name, value, wrong, attributes, onInput }) {
  return html`<label class="field" data-field=${name}>
    <span>${t(`field_${name}`)}</span>
    <input name=${name} value=${value} onInput=${onInput} autocomplete="off" aria-invalid=${wrong ? "true" : "false"} aria-describedby=${`wrong-${name}`} ...${attributes} />
    <span class="problem" id=${`wrong-${name}`} role="alert">${wrong ?? ""}</span>
  </label>`;
}

/** One whole number and what it does. */
export function AddUnits({ sale, onDone, onClose }) {
  const [units, setUnits] = useState("");
  const [problem, setProblem] = useState("");
  const submit = async (event) => {
    event.preventDefault();
    if (!isWhole(units, 1, UNITS_MAX)) return setProblem(t("wrong_whole", { least: 1, most: count(UNITS_MAX) }));
    try {
      onDone(await ask("PATCH", `/v1/sales/${sale.id}`, { add_units: Number(units) }));
    } catch (error) {
      setProblem(told(error));
    }
    return undefined;
  };
  return html`<form novalidate onSubmit=${submit}>
    <p>${t("add_units_effect")}</p>
    <label class="field">
      <span>${t("field_units")}</span>
      <input name="add_units" inputmode="numeric" autocomplete="off" value=${units} onInput=${(event) => setUnits(event.target.value)} aria-describedby="wrong-add-units" autofocus />
    </label>
    <p class="problem" id="wrong-add-units" role="alert">${problem}</p>
    <div class="buttons">
      <button type="submit" class="button primary">${t("add_units")}</button>
      <button type="button" class="button quiet" onClick=${onClose}>${t("back")}</button>
    </div>
  </form>`;
}
