// Words, money and times in the reader's language.

import { decimalsOf } from "./currencies.js";
import { loadTexts, meta } from "./facts.js";
import { LANGUAGES, languageFor } from "./languages.js";

const CHOSEN = "seckill.language";
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const RETRY_MS = 1_000;

/** Those that this page has: operators' pages have fewer. */
export const offered = meta("languages") === "" ? Object.keys(LANGUAGES) : meta("languages").split(" ");

let language = initial();
let texts = {};
const tables = {}; // of operators' pages: each text as [English, 中文]
const listeners = new Set();

function initial() {
  if (meta("language") !== "") return meta("language");
  const chosen = localStorage.getItem(CHOSEN);
  return offered.includes(chosen) ? chosen : languageFor(navigator.languages ?? [navigator.language], offered);
}

export const currentLanguage = () => language;

/** Without texts there is no page, so it is asked for until it comes. */
async function textsIn(code) {
  for (;;) {
    try {
      return (await loadTexts(code)).TEXTS;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/** Nothing can be drawn before. */
export const ready = textsIn(language).then((found) => {
  texts = found;
  if (meta("embedded") === "") document.documentElement.lang = htmlLanguage();
});

export async function chooseLanguage(code) {
  localStorage.setItem(CHOSEN, code);
  const found = await textsIn(code);
  if (localStorage.getItem(CHOSEN) !== code) return; // another was chosen meanwhile
  [language, texts] = [code, found];
  document.documentElement.lang = htmlLanguage();
  for (const listener of listeners) listener();
}

export const htmlLanguage = () => LANGUAGES[language].tag;
export const onLanguage = (listener) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

const textOf = (key) => texts[key] ?? tables[key]?.[language === "zh" ? 1 : 0];

/** The text of a key, with {names} filled in. A key that is not there is a mistake, and tests look for it. */
export function t(key, values = {}) {
  const text = textOf(key);
  if (text === undefined) throw new Error(`no such text: ${key}`);
  return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/** One after the other; of what is missing, nothing. Chinese and Japanese have no space behind a sentence. */
export const sentences = (...said) => said.filter(Boolean).join(language === "en" ? " " : "");

/** The text for as many: English has another one for one of them. */
export function counted(key, many, values = {}) {
  const filled = { many: count(many), ...values };
  return many === 1 ? t(`${key}_one`, filled) : t(key, filled);
}

/** Where there is a text for one of them; else the text. */
export const countedIf = (key, many, values) => (has(`${key}_one`) ? counted(key, many, values) : t(key, values));

export const has = (key) => textOf(key) !== undefined;

/** Of operators' pages, in a table of both their languages. */
export const addTexts = (table) => Object.assign(tables, table);

/** Of English, the reader's own. */
const locale = () => (language === "en" ? ((navigator.languages ?? []).find((code) => /^en/i.test(code)) ?? "en") : LANGUAGES[language].tag);

/** In minor units. Without decimals where there are none, and with a sign that no other currency has on these pages. */
export function money(cents, currency) {
  if (cents === 0) return t("free");
  const unit = 10 ** decimalsOf(currency);
  const digits = cents % unit === 0 ? 0 : decimalsOf(currency);
  const options = { style: "currency", currency, minimumFractionDigits: digits, maximumFractionDigits: digits };
  // Japanese has 元 for the yuan, which stands behind the number in other languages.
  const shown = new Intl.NumberFormat(language === "ja" && currency !== "JPY" ? "en" : locale(), options).formatToParts(cents / unit);
  return shown.map(({ type, value }) => (type === "currency" ? signOf(currency, value) : value)).join("");
}

// What the yen has in America and the yuan in China; here it is the yuan's, and in Chinese only.
const signOf = (currency, sign) => (sign === "¥" && !(currency === "CNY" && language === "zh") ? `${currency.slice(0, 2)}¥` : sign);

export const count = (number) => new Intl.NumberFormat(locale()).format(number);

export const stock = ({ units, limit_per_buyer: limit }) => counted("units_and_limit", units, { limit });

const HANDS = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const CLOCK = { ...HANDS, second: "2-digit" };
const DATE = { month: "short", day: "numeric" };

const isSameDay = (oneMs, otherMs) => new Date(oneMs).toDateString() === new Date(otherMs).toDateString();

/** With the date only where it is not today's. */
export function time(ms, nowMs, hands = CLOCK) {
  return new Intl.DateTimeFormat(locale(), { ...dateOf([ms], nowMs), ...hands }).format(ms);
}

/** To the millisecond. */
export const exactTime = (ms, nowMs) => time(ms, nowMs, { ...CLOCK, fractionalSecondDigits: 3 });

/** As much of a date as tells these times from the same hour today. */
function dateOf(times, nowMs) {
  if (times.every((ms) => isSameDay(ms, nowMs))) return {};
  const thisYear = times.every((ms) => new Date(ms).getFullYear() === new Date(nowMs).getFullYear());
  return thisYear ? DATE : { year: "numeric", ...DATE };
}

/** With seconds only where there are any, and only today. */
export const roundTime = (ms, nowMs) => time(ms, nowMs, ms % MINUTE_MS === 0 || !isSameDay(ms, nowMs) ? HANDS : CLOCK);

const SHORT_MS = 10 * MINUTE_MS;

/** When a sale is on: both times in one form. With the date unless both are of today, with seconds only if it is short
 * and they are not whole minutes. One that was closed before its time has ended at a moment that nobody tells. */
export function period({ begins_at: from, ends_at: to, state }, nowMs) {
  const [begins, ends] = [Date.parse(from), Date.parse(to)];
  const whole = begins % MINUTE_MS === 0 && ends % MINUTE_MS === 0;
  const hands = whole || ends - begins > SHORT_MS ? HANDS : CLOCK;
  const closed = isClosedEarly({ state, ends_at: to }, nowMs);
  const form = new Intl.DateTimeFormat(locale(), { ...dateOf(closed ? [begins] : [begins, ends], nowMs), ...hands });
  const values = { from: form.format(begins), to: untilThen(begins, ends, form, hands), zone: zone(begins) };
  return t(closed ? "from_closed_early" : "from_to", values);
}

const dayForm = (timeZone) => new Intl.DateTimeFormat("en", { dateStyle: "short", timeZone });

/** Without the date, if that has just been said. */
function untilThen(begins, ends, form, hands, timeZone) {
  const day = dayForm(timeZone);
  const sameDay = day.format(begins) === day.format(ends);
  return (sameDay ? new Intl.DateTimeFormat(locale(), { ...hands, timeZone }) : form).format(ends);
}

/** The same by the clocks of the sale's zone, with the date where it is another day there; "": where those clocks are the
 * reader's, or the browser does not know them. */
export function periodThere({ begins_at: from, ends_at: to, timezone }, nowMs) {
  const [begins, ends] = [Date.parse(from), Date.parse(to)];
  const isSameDate = (ms) => dayForm(timezone).format(ms) === dayForm().format(ms);
  const date = () => ({ ...([begins, ends].every(isSameDate) ? {} : DATE), ...dateOf([begins, ends], nowMs) });
  const form = (timeZone) => new Intl.DateTimeFormat(locale(), { ...date(), ...HANDS, timeZone });
  try {
    const [there, here] = [form(timezone), form()];
    if (there.format(begins) === here.format(begins) && there.format(ends) === here.format(ends)) return "";
    return t("from_to_there", { from: there.format(begins), to: untilThen(begins, ends, there, HANDS, timezone), zone: timezone.split("/").pop().replaceAll("_", " ") });
  } catch {
    return "";
  }
}

export const isClosedEarly = ({ state, ends_at: to }, nowMs) => state === "ended" && Date.parse(to) > nowMs;

export const shortTime = (ms, nowMs) => time(ms, nowMs, HANDS);

const CHINA = ["Asia/Shanghai", "Asia/Chongqing", "Asia/Harbin", "PRC"];

/** The zone in which times are shown, as people call it: GMT+8, which is 北京时间 to those who live in it. */
export function zone(ms) {
  if (CHINA.includes(new Intl.DateTimeFormat().resolvedOptions().timeZone)) return t("zone_of_china");
  const parts = new Intl.DateTimeFormat(locale(), { timeZoneName: "short" }).formatToParts(ms);
  return parts.find((part) => part.type === "timeZoneName").value;
}

export const dateTime = (ms) =>
  new Intl.DateTimeFormat(locale(), { year: "numeric", ...DATE, ...CLOCK, fractionalSecondDigits: 3 }).format(ms);

/** 10:00, by the clock of that zone. */
export const clock = (ms, timeZone) => {
  try {
    return new Intl.DateTimeFormat(locale(), { ...HANDS, timeZone }).format(ms);
  } catch {
    return ""; // a zone that this browser does not know
  }
};

/** Tue, 17 Nov, 10:00: for days to come. */
export const dayAndTime = (ms) => new Intl.DateTimeFormat(locale(), { weekday: "short", ...DATE, ...HANDS }).format(ms);

/** Nobody counts seconds until tomorrow. */
export function roughDuration(ms) {
  const [days, hours] = parts(ms);
  return days > 0 ? t("days_and_hours", { days, hours: Number(hours) }) : shortDuration(ms);
}

/** 0 is Sunday. */
export const weekday = (day) =>
  new Intl.DateTimeFormat(locale(), { weekday: "long", timeZone: "UTC" }).format(Date.UTC(2023, 0, 1 + day));

/** One, another and a third. */
export const enumerated = (words) => new Intl.ListFormat(locale(), { type: "conjunction" }).format(words);

const two = (number) => String(number).padStart(2, "0");

/** [days, "hh", "mm", "ss"] until then: a second that has begun counts, so that 00:00:00 means now. */
export function parts(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const days = Math.floor((seconds * 1000) / DAY_MS);
  return [days, two(Math.floor(seconds / 3600) % 24), two(Math.floor(seconds / 60) % 60), two(seconds % 60)];
}

export function shortDuration(ms) {
  const [days, hours, minutes, seconds] = parts(ms);
  if (days > 0) return t("days_and_time", { days, time: `${hours}:${minutes}:${seconds}` });
  return hours === "00" ? `${minutes}:${seconds}` : `${hours}:${minutes}:${seconds}`;
}

const HAN_AFTER_DIGIT = /(\d)(?=\p{Script=Han})/gu;
const SPACE_IN_HAN = /(\p{Script=Han}) (?=\p{Script=Han})/gu;

/** A value in words, put into a sentence: Chinese has no space between two characters. */
export const unspaced = (text) => text.replace(SPACE_IN_HAN, "$1");

/** 58 seconds, 3 minutes 6 seconds, 2 hours: in words, for a time that is not counted down. */
export function spoken(seconds) {
  const form = { style: "unit", unitDisplay: language === "en" ? "long" : "short", maximumFractionDigits: 1 };
  const said = (unit, many) => new Intl.NumberFormat(locale(), { ...form, unit }).format(many).replace(HAN_AFTER_DIGIT, "$1 ");
  if (seconds < 60) return said("second", seconds);
  const whole = Math.round(seconds);
  const amounts = [["hour", Math.floor(whole / 3600)], ["minute", Math.floor(whole / 60) % 60], ["second", whole % 60]];
  return amounts.filter(([, many]) => many > 0).slice(0, 2).map(([unit, many]) => said(unit, many)).join(" ");
}

/** For eyes and phones: 7K3M-9QXD-2ABCD. The API takes it with or without the hyphens. */
export const readable = (orderId) => orderId.replace(/^(.{4})(.{4})(.+)$/, "$1-$2-$3");
