// Announcing a sale, and changing one. What is wrong is said at its field, and nothing that was typed is lost.

import { useEffect, useRef, useState } from "../../vendor/preact/hooks.mjs";
import { nowMs } from "../clock.js";
import { decimalsOf, isCurrency, minorUnits } from "../currencies.js";
import { count, counted, money, stock, t, time } from "../i18n.js";
import { newKey } from "../press.js";
import { html, useNow } from "../ui.js";
import { BuyersView } from "./buyers_view.js";
import { CurrencyField, ZoneList, ownZone } from "./choices.js";
import { DOOR_FIELDS, DoorFields, LimitFields, checkDoor, doorBody, initialDoor, initialLimits, limitsBody } from "./door.js";
import { GOODS_FIELDS, GoodsFields, asTyped, checkGoods, goodsBody, initialGoods } from "./goods.js";
import { ItemRows, checkItems, copiedItems, initialItems, itemsBody } from "./items.js";
import { LINE_FIELDS, LineFields, checkLine, initialLine, lineBody } from "./line_fields.js";
import { Preview, useWindows } from "./repetition.js";
import { said } from "./sentences.js";
import { ask, told } from "./session.js";
import { WhyField } from "./why.js";

const UNITS_MAX = 1_000_000_000;
const LIMIT_MAX = 1_000;
const LANES_MAX = 256;
const COOL_DOWN_S_MAX = 3_600;
const TITLE_MAX = 200;
const MINUTE_MS = 60_000;
const AHEAD_MS = 10 * MINUTE_MS; // time to look at it once more before anybody can buy

/** A time as the field wants it, in the operator's own time zone. */
function local(ms) {
  const at = new Date(ms - new Date(ms).getTimezoneOffset() * MINUTE_MS);
  return at.toISOString().slice(0, 19);
}

/** The next full hour that is not too near. */
function nextHour() {
  const at = new Date(nowMs() + AHEAD_MS);
  at.setHours(at.getHours() + 1, 0, 0, 0);
  return at.getTime();
}

/** Of a sale that is changed, or of a new one, which may begin as a copy of another. */
function initial(sale, like) {
  if (sale === null) {
    const begins = nextHour();
    if (like !== null) return copied(like, begins);
    return {
      title: "",
      units: "100",
      limit_per_buyer: "1",
      price: "",
      free: false,
      currency: "CNY",
      begins_at: local(begins),
      ends_at: local(begins + 60 * MINUTE_MS),
      pay_within: "15",
      repetition: "once",
      repeat: "",
      cool_down_s: "5",
      lanes: "1",
      confirm: "gate",
      timezone: Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC",
      draft: false,
      items: [],
      vouchers: false,
      ...initialGoods(null),
      ...initialDoor(null),
      ...initialLimits(null),
      ...initialLine(null),
    };
  }
  return {
    title: sale.title,
    limit_per_buyer: String(sale.limit_per_buyer),
    cool_down_s: String(sale.cool_down_s),
    begins_at: local(Date.parse(sale.begins_at)),
    ends_at: local(Date.parse(sale.ends_at)),
    items: initialItems(sale),
    ...initialGoods(sale),
    ...initialDoor(sale),
  };
}

/** All that can be said of a new sale as this one has it, but for its window, which is over or taken, and the shop's own
 * id, which no two sales have. */
function copied(sale, begins) {
  const repetition = sale.repeat === null ? "once" : sale.repeat === "daily" ? "daily" : "cron";
  return {
    title: sale.title,
    units: String(sale.units),
    limit_per_buyer: String(sale.limit_per_buyer),
    price: sale.price_cents === 0 ? "" : asTyped(sale.price_cents, sale.currency),
    free: sale.price_cents === 0,
    currency: sale.currency,
    begins_at: local(begins),
    ends_at: local(begins + Date.parse(sale.ends_at) - Date.parse(sale.begins_at)),
    pay_within: String(Math.max(1, Math.round(sale.pay_within_s / 60))),
    repetition,
    repeat: repetition === "cron" ? sale.repeat : "",
    cool_down_s: String(sale.cool_down_s),
    lanes: String(sale.lanes),
    confirm: sale.confirm,
    timezone: sale.timezone,
    draft: true,
    items: copiedItems(sale),
    vouchers: sale.vouchers,
    ...initialGoods(sale),
    external_id: "",
    ...initialDoor(sale),
    ...initialLimits(sale),
    ...initialLine(sale),
  };
}

const isWhole = (text, least, most) => /^[0-9]{1,10}$/.test(text) && Number(text) >= least && Number(text) <= most;

/** Field → what is wrong with it. */
function check(values, sale) {
  const isNew = sale === null;
  const currency = sale?.currency ?? values.currency;
  const wrong = { ...checkGoods(values, currency), ...checkItems(values.items, currency, isNew), ...checkDoor(values) };
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
  Object.assign(wrong, checkLine(values));
  const plain = values.items.length === 0;
  if (plain && !isWhole(values.units, 1, UNITS_MAX)) wrong.units = t("wrong_whole", { least: 1, most: count(UNITS_MAX) });
  if (!isCurrency(values.currency)) wrong.currency = t("wrong_currency");
  else if (plain && !values.free && values.price.trim() === "") wrong.price = t("wrong_price_empty");
  else if (plain && price(values) === null) wrong.price = wrongPrice(values);
  if (!isWhole(values.pay_within, 1, 43_200)) wrong.pay_within = t("wrong_whole", { least: 1, most: count(43_200) });
  if (!isWhole(values.lanes, 1, LANES_MAX)) wrong.lanes = t("wrong_whole", { least: 1, most: LANES_MAX });
  if (values.repetition === "cron" && values.repeat.trim() === "") wrong.repeat = t("wrong_cron_empty");
  if (!isZone(values.timezone.trim())) wrong.timezone = said(`"${values.timezone.trim()}" is not a time zone; write it like Asia/Shanghai`);
  return wrong;
}

function isZone(timeZone) {
  try {
    return new Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone !== undefined && timeZone !== "";
  } catch {
    return false;
  }
}

function wrongPrice({ currency }) {
  const decimals = decimalsOf(currency);
  return decimals === 0 ? t("wrong_price_whole", { currency }) : t("wrong_price", { exact: (99.5).toFixed(decimals) });
}

const price = ({ price: typed, free, currency }) => (free ? 0 : minorUnits(typed.trim(), currency));

/** Whose clocks it goes by, and how it comes again, as the API wants it. */
function clocks({ repetition, repeat, timezone }) {
  if (repetition === "once") return { timezone: timezone.trim() };
  return { timezone: timezone.trim(), repeat: repetition === "daily" ? "daily" : repeat.trim() };
}

/** What the server can tell the next rounds of; null while something is missing. */
function toPreview(values) {
  const [begins, ends] = [Date.parse(values.begins_at), Date.parse(values.ends_at)];
  const again = clocks(values);
  if (!again.repeat || !(ends > begins)) return null;
  return { ...again, begins_at: new Date(begins).toISOString(), ends_at: new Date(ends).toISOString() };
}

function body(values, sale) {
  const times = { begins_at: new Date(values.begins_at).toISOString(), ends_at: new Date(values.ends_at).toISOString() };
  const common = {
    title: values.title.trim(),
    limit_per_buyer: Number(values.limit_per_buyer),
    cool_down_s: Number(values.cool_down_s),
    ...doorBody(values, sale),
  };
  if (sale !== null) return { ...common, ...onlyMoved(times, sale), ...goodsBody(values, sale.currency, sale), ...itemsBody(values.items, sale.currency, sale) };
  const stock = values.items.length > 0 ? itemsBody(values.items, values.currency, null) : { units: Number(values.units), price_cents: price(values) };
  return {
    ...common,
    ...goodsBody(values, values.currency, null),
    ...limitsBody(values),
    ...lineBody(values),
    ...(values.draft ? { published: false } : {}),
    ...(values.vouchers ? { vouchers: true } : {}),
    ...times,
    ...clocks(values),
    ...stock,
    currency: values.currency,
    pay_within_s: Number(values.pay_within) * 60,
    lanes: Number(values.lanes),
    confirm: values.confirm,
  };
}

// What a form leaves out where there is nothing of it. In a copy, null says so: what is not named is as in the sale.
const LEFT_OUT = ["audience", "beacon", "description", "delivery", "external_id", "images", "limit_by", "limit_group", "list_price_cents", "metadata", "order", "pass", "pass_work", "repeat", "return_url", "serve_per_s", "terms_url", "vouchers", "waiting_list"];
const copyBody = (values) => ({ ...Object.fromEntries(LEFT_OUT.map((name) => [name, null])), ...body(values, null), published: !values.draft });

/** A sale that has begun cannot begin at another time, not even at the same one to the second. */
function onlyMoved(times, sale) {
  const moved = Object.entries(times).filter(([name, time]) => Math.abs(Date.parse(time) - Date.parse(sale[name])) >= 1000);
  return Object.fromEntries(moved);
}

const FIELDS = { "audience.groups": "groups", "audience.early": "early", price_cents: "price", pay_within_s: "pay_within", list_price_cents: "list_price" };
const byField = (errors) => Object.fromEntries(errors.map(({ field, message }) => [nameOf(field), said(message)]));
const withoutIndex = (field) => field.replace(/\[.*/, "");
/** Of a list, `images[2]` is a line of its one field; items have rows of fields. */
const nameOf = (field) => (field.startsWith("items[") ? field.replace("price_cents", "price") : (FIELDS[withoutIndex(field)] ?? withoutIndex(field)));
/** What is no longer wrong is not said any more. `said`: by the server, which is asked again only with the whole form, so
 * its word stands until the field is another. */
function mended(wrong, found, said, changed) {
  const stays = (name) => name in found || (said.has(name) && !changed.includes(withoutIndex(name)));
  return Object.fromEntries(Object.entries(wrong).filter(([name, text]) => text && stays(name)).map(([name, text]) => [name, found[name] ?? text]));
}

/** What the button will do, in one line; nothing while that cannot be told. */
function Outcome({ values, now }) {
  const { items, currency } = values;
  const prices = items.length > 0 ? items.map((item) => minorUnits(item.price.trim(), currency)) : [price(values)];
  const units = items.length > 0 ? items.reduce((sum, item) => sum + Number(item.units), 0) : Number(values.units);
  const begins = Date.parse(values.begins_at);
  if (prices.includes(null) || !(units > 0) || !isWhole(values.limit_per_buyer, 1, LIMIT_MAX) || Number.isNaN(begins)) return null;
  const least = Math.min(...prices);
  const told = {
    stock: stock({ units, limit_per_buyer: Number(values.limit_per_buyer) }),
    price: least === Math.max(...prices) ? money(least, currency) : t("from_price", { price: money(least, currency) }),
    when: begins > now ? t("outcome_begins", { time: time(begins, now) }) : t("outcome_at_once"),
  };
  return html`<p class="outcome" data-outcome><strong>${t("outcome", told)}</strong> <span class="facts">${t(values.draft ? "outcome_draft" : "outcome_public")}</span></p>`;
}

// What was typed and not sent, by the sale that it begins as a copy of: a form that is closed by mistake, or left for
// another page, is there again as it was. Of a sale that is changed nothing is kept: others may change it meanwhile.
const unfinished = new Map();
const nameOfForm = (sale, like) => (sale === null ? (like?.id ?? "new") : null);

const REPETITIONS = ["once", "daily", "cron"];
const CONFIRMATIONS = ["gate", "ledger"];

/** `like`: a sale that a new one begins as a copy of. */
export function SaleForm({ sale = null, like = null, onDone, onClose }) {
  const name = nameOfForm(sale, like);
  const [isOld, setIsOld] = useState(unfinished.has(name));
  const [values, setValues] = useState(() => unfinished.get(name) ?? initial(sale, like));
  const fresh = useRef(null);
  const [first] = useState(values);
  const [leaving, setLeaving] = useState(false);
  const done = (made) => {
    unfinished.delete(name);
    onDone(made);
  };
  const anew = () => {
    unfinished.delete(name);
    setIsOld(false);
    setWrong({});
    fresh.current = initial(sale, like);
    setValues(fresh.current);
  };
  // One key for what is announced: sent again after a lost answer, it is the same sale.
  const sent = useRef({ text: null, key: null });
  const [wrong, setWrong] = useState({});
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const form = useRef();
  const why = useRef();
  const saidByServer = useRef(new Set());
  const before = useRef(values);
  useEffect(() => {
    const changed = Object.keys(values).filter((name) => values[name] !== before.current[name]);
    before.current = values;
    if (changed.length > 0 && name !== null && values !== fresh.current) unfinished.set(name, values);
    if (changed.length > 0) setWrong((known) => mended(known, check(values, sale), saidByServer.current, changed));
  }, [values]);
  const now = useNow(1000);
  const wanted = sale === null ? toPreview(values) : null;
  const windows = useWindows(wanted, (errors) => {
    const { repeat, timezone, ends_at } = byField(errors);
    for (const name of ["repeat", "timezone", "ends_at"]) saidByServer.current.add(name);
    setWrong((known) => ({ ...known, repeat, timezone, ends_at }));
  });
  // The first from above, wherever it is folded away.
  const point = (found) => {
    const first = [...(form.current?.elements ?? [])].find((each) => found[each.name]);
    const folded = first?.closest("details");
    if (folded) folded.open = true;
    first?.focus({ preventScroll: true });
    first?.closest(".field")?.scrollIntoView({ block: "center" });
  };
  const send = () => {
    if (sale !== null) return ask("PATCH", `/v1/sales/${sale.id}`, body(values, sale), { reason: why.current });
    const content = like === null ? body(values, null) : copyBody(values);
    return ask("POST", like === null ? "/v1/sales" : `/v1/admin/sales/${like.id}/duplicate`, content, { key: keyOf(sent, content) });
  };
  const submit = async (event) => {
    event.preventDefault();
    const found = check(values, sale);
    // What the server has said of the repetition stands until it says otherwise.
    setWrong(({ repeat, timezone }) => ({ repeat, timezone, ...found }));
    setProblem("");
    if (Object.keys(found).length > 0) return point(found);
    setBusy(true);
    try {
      done(await send());
    } catch (error) {
      const errors = byField(error.problem?.errors ?? []);
      saidByServer.current = new Set(Object.keys(errors));
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
  const choice = (name, choices, onChange) => html`<label class="field" data-field=${name}><span>${t(`field_${name}`)}</span>
    <select name=${name} value=${values[name]} onChange=${onChange}>
      ${choices.map((each) => html`<option key=${each} value=${each}>${t(`${name}_${each}`)}</option>`)}
    </select><span class="problem" role="alert">${wrong[name] ?? ""}</span></label>`;
  const choose = (event) => setValues((known) => ({ ...known, [event.target.name]: event.target.value }));
  const chooseRepetition = (event) => {
    choose(event);
    setWrong((known) => ({ ...known, repeat: undefined, timezone: undefined }));
  };
  const tick = (name) => html`<label class="check"><input type="checkbox" name=${name} checked=${values[name]} onChange=${(event) => setValues((known) => ({ ...known, [name]: event.target.checked }))} /><span>${t(`field_${name}`)}</span></label>`;
  const addPicture = (address) => setValues((known) => ({ ...known, images: [known.images.trim(), address].filter(Boolean).join("\n") }));
  // What is kept is there again; the rest is not thrown away unasked.
  const close = () => (name === null && values !== first && !leaving ? setLeaving(true) : onClose());
  const keys = (event) => {
    if (event.key !== "Escape" || name !== null || values === first) return;
    event.preventDefault();
    setLeaving(true);
  };
  const plain = values.items.length === 0;
  const faults = Object.values(wrong).filter(Boolean).length;
  return html`<form class="sale-form" ref=${form} novalidate onSubmit=${submit} onKeyDown=${keys}>
    ${isOld && html`<p class="facts" data-unfinished>${t("form_unfinished")} <button type="button" class="link" onClick=${anew}>${t("form_anew")}</button></p>`}
    ${sale?.repeat && html`<p class="facts">${t("edit_repeating")}</p>`}
    ${like !== null && html`<p class="facts">${t("duplicate_why", { title: like.title })}</p>`}
    ${field("title", { autofocus: true })}
    ${sale === null && plain && field("units", { inputmode: "numeric" })}
    ${field("limit_per_buyer", { inputmode: "numeric" })}
    ${sale === null && plain && field("price", { inputmode: "decimal", disabled: values.free })}
    ${sale === null && html`<${CurrencyField} value=${values.currency} wrong=${wrong.currency} onChange=${choose} />`}
    ${sale === null && plain && tick("free")}
    ${field("begins_at", { type: "datetime-local", step: 1 })}
    ${field("ends_at", { type: "datetime-local", step: 1 })}
    ${sale === null && field("pay_within", { inputmode: "numeric" })}
    ${sale === null && choice("repetition", REPETITIONS, chooseRepetition)}
    ${sale === null && values.repetition === "cron" && field("repeat", { placeholder: "0 10 * * MON-FRI" })}
    ${sale === null && html`${field("timezone", { list: "zones" })}<${ZoneList} />`}
    ${sale === null && values.repetition === "daily" && wrong.repeat && html`<p class="problem" role="alert">${wrong.repeat}</p>`}
    <${Preview} wanted=${wanted} windows=${windows} now=${now} />
    ${(sale === null || !plain) && html`<${Folded} title=${t("items")} open=${Object.keys(wrong).some((name) => name.startsWith("items") && wrong[name])}>
      <${ItemRows} items=${values.items} isNew=${sale === null} wrong=${wrong} onChange=${(items) => setValues((known) => ({ ...known, items }))} />
    <//>`}
    <${Folded} title=${t("goods")} hint=${t("goods_hint")} open=${GOODS_FIELDS.some((name) => wrong[name] !== undefined)}>
      <${GoodsFields} field=${field} onPicture=${addPicture} />
    <//>
    ${sale === null && html`<${Folded} title=${t("line_rules")} hint=${t("line_rules_hint")} open=${LINE_FIELDS.some((name) => wrong[name] !== undefined)}>
      <${LineFields} field=${field} choice=${choice} choose=${choose} tick=${tick} values=${values} />
    <//>`}
    <${Folded} title=${t("door")} hint=${t("door_hint")} open=${DOOR_FIELDS.some((name) => wrong[name] !== undefined)}>
      <${DoorFields} field=${field} choice=${choice} choose=${choose} values=${values} />
      ${sale === null && html`<${LimitFields} field=${field} />`}
    <//>
    <${BuyersView} values=${values} sale=${sale} now=${now} />
    ${sale === null && tick("vouchers")}
    ${sale === null && tick("draft")}
    <${Folded} title=${t("advanced")} open=${wrong.lanes !== undefined || wrong.cool_down_s !== undefined}>
      ${field("cool_down_s", { inputmode: "numeric" })}<p class="facts">${t("cool_down_why")}</p>
      ${sale === null && html`${choice("confirm", CONFIRMATIONS, choose)}<p class="facts">${t("confirm_why")}</p>`}
      ${sale === null && html`${field("lanes", { inputmode: "numeric" })}<p class="facts">${t("lanes_why")}</p>`}
    <//>
    ${sale === null && html`<${Outcome} values=${values} now=${now} />`}
    ${sale !== null && html`<${WhyField} onReason=${(reason) => (why.current = reason)} />`}
    <div class="form-foot">
      <p class="problem" role="alert">${faults > 0 ? counted("form_faults", faults) : problem}</p>
      ${leaving && html`<p class="notice" role="alert" data-leaving>${t("form_leaving")}</p>`}
      <div class="buttons">
        <button type="submit" class="button primary" disabled=${busy}>${t(sale !== null ? "save" : values.draft ? "save_draft" : "announce")}</button>
        <button type="button" class="button quiet" onClick=${close}>${t(leaving ? "form_discard" : "back")}</button>
      </div>
    </div>
  </form>`;
}

function keyOf(sent, content) {
  const text = JSON.stringify(content);
  if (sent.current.text !== text) sent.current = { text, key: newKey() };
  return sent.current.key;
}

/** Fields that are rarely needed; open while something in them is wrong. */
function Folded({ title, hint = "", open, children }) {
  const element = useRef();
  useEffect(() => {
    if (open) element.current.open = true;
  }, [open]);
  return html`<details ref=${element} class="advanced"><summary>${title}${hint && html` <span class="hint">${hint}</span>`}</summary>${children}</details>`;
}

/** Of several lines if it has `rows`. */
function Field({ name, value, wrong, attributes, onInput }) {
  const control = attributes.rows ? "textarea" : "input";
  return html`<label class="field" data-field=${name}>
    <span>${t(`field_${name}`, { zone: ownZone() })}</span>
    <${control} name=${name} value=${value} onInput=${onInput} autocomplete="off" aria-invalid=${wrong ? "true" : "false"} aria-describedby=${`wrong-${name}`} ...${attributes} />
    <span class="problem" id=${`wrong-${name}`} role="alert">${wrong ?? ""}</span>
  </label>`;
}

/** One whole number and what it does. */
export function AddUnits({ sale, onDone, onClose }) {
  const [units, setUnits] = useState("");
  const [itemId, setItemId] = useState(sale.items?.[0].item_id);
  const [problem, setProblem] = useState("");
  const why = useRef();
  const submit = async (event) => {
    event.preventDefault();
    if (!isWhole(units, 1, UNITS_MAX)) return setProblem(t("wrong_whole", { least: 1, most: count(UNITS_MAX) }));
    try {
      const more = { add_units: Number(units) };
      const change = itemId === undefined ? more : { items: [{ item_id: itemId, ...more }] };
      onDone(await ask("PATCH", `/v1/sales/${sale.id}`, change, { reason: why.current }));
    } catch (error) {
      setProblem(told(error));
    }
    return undefined;
  };
  return html`<form novalidate onSubmit=${submit}>
    <p>${t("add_units_effect")}</p>
    ${sale.items &&
    html`<label class="field"><span>${t("field_item")}</span>
      <select name="item" value=${itemId} onChange=${(event) => setItemId(event.target.value)}>
        ${sale.items.map((item) => html`<option key=${item.item_id} value=${item.item_id}>${item.title}</option>`)}
      </select></label>`}
    <label class="field">
      <span>${t("field_units")}</span>
      <input name="add_units" inputmode="numeric" autocomplete="off" value=${units} onInput=${(event) => setUnits(event.target.value)} aria-describedby="wrong-add-units" autofocus />
    </label>
    <p class="problem" id="wrong-add-units" role="alert">${problem}</p>
    <${WhyField} onReason=${(reason) => (why.current = reason)} />
    <div class="buttons">
      <button type="submit" class="button primary">${t("add_units")}</button>
      <button type="button" class="button quiet" onClick=${onClose}>${t("back")}</button>
    </div>
  </form>`;
}
