// One sale, and what becomes of one's press of its button.

import { useEffect, useRef, useState } from "../vendor/preact/hooks.mjs";
import { Refused, backoffMs, base, call, canSignIn, isEmbedded } from "./api.js";
import { isClockSet, nowMs, syncClock } from "./clock.js";
import { Ahead } from "./ahead.js";
import { Cover } from "./cover.js";
import { useDoor } from "./door.js";
import { firstSale } from "./first.js";
import { Details, Gallery, Left, Price } from "./goods.js";
import { counted, money, period, periodThere, roundTime, sentences, shortDuration, spoken, stock, t } from "./i18n.js";
import { ItemChoice, itemOf, priceOf } from "./items.js";
import { lazily, part } from "./lazily.js";
import { Line } from "./line.js";
import { goesOn, isNewer, mayBePaidLate, watch, watchLate } from "./live.js";
import { OrderPanel, isLive } from "./order.js";
import { PassNote, usePass } from "./pass.js";
import { act, answered, askAhead, claim, press, pressOf } from "./press.js";
import { Countdown, OrderLink, Refusal, Sending } from "./panels.js";
import { CopyButton, sum } from "./receipt.js";
import { Confirm, Empty, SignInFirst, Skeleton, html, useFocusKept, useNow, useRepeated } from "./ui.js";

// Everybody's button comes to life a little later than the sale, and not everybody's at once.
const JITTER_MS = 300;
// A finger that presses twice on "buy" must not have pressed "pay".
const UNARMED_MS = 700;
const DAY_MS = 24 * 3_600_000;
const AHEAD_MS = 60_000;
const TIMER_MS_MAX = 2 ** 31 - 1;
// What is known of a sale may come from a cache, and be older than the question by so much.
const CACHED_MS = 1_500;
const Codes = lazily(() => part("codes", { useEffect, useState, backoffMs, call, t, html, useRepeated, CopyButton }));
// Characters, of which Chinese ones count twice: set smaller, so that the goods and the button stay near.
const LONG_TITLE = 60;
const VERY_LONG_TITLE = 140;

export function SalePage({ saleId, ...page }) {
  const [sale, problem, reload] = useSale(saleId);
  const [itemId, setItemId] = useState(null);
  const door = useDoor(sale);
  if (sale === null) return html`<${NoSale} problem=${problem} />`;
  return html`<${Product} sale=${sale} item=${itemOf(sale, itemId)}>
    <${Ways} key=${`${page.me?.user} ${sale.round}`} sale=${door?.forMe(sale, page.me) ?? sale} reload=${reload} itemId=${itemId} onChoose=${setItemId} ...${page} />
  <//>`;
}

/** What buyers do here: press a button, join a line, or the one after the other. `Afterwards`: what stands below. */
function Ways(shown) {
  const { sale, Afterwards } = shown;
  const [unpaid, setUnpaid] = useState(null); // of a sale that is sold out; null: not known
  useEffect(() => setUnpaid(null), [sale.state]);
  const hasList = sale.waiting_list && !sale.lined && sale.state === "sold_out";
  return html`${!sale.lined && html`<div class=${`way${hasList ? " with-list" : ""}`}><${Buying} ...${shown} unpaid=${unpaid} /></div>`}
    ${(sale.lined || hasList) && html`<${Line} ...${shown} Buying=${Buying} />`}
    ${Afterwards && html`<${Afterwards} ...${shown} onStory=${(story) => setUnpaid(story.may_return)} />`}`;
}

/** The same page, about one order of whichever round. */
export function OrderPage({ orderId, ...page }) {
  const { me, onSignIn, onSignedOut } = page;
  const [order, setOrder] = useState(null);
  const [unknown, setUnknown] = useState(false);
  useRepeated(
    async (isOver) => {
      if (!me) return Infinity;
      try {
        const found = await call("GET", `/v1/orders/${encodeURIComponent(orderId)}`, { token: me.token });
        if (!isOver()) setOrder(found);
        return Infinity;
      } catch (error) {
        if (error.status === 401) return onSignedOut();
        setUnknown(error.status === 404);
        return error.status === 404 ? Infinity : backoffMs(3);
      }
    },
    [orderId, me?.token],
  );
  if (!me) {
    return html`<h1>${t("order")}</h1><${SignInFirst} text=${t("sign_in_to_see_orders")} onSignIn=${onSignIn} />`;
  }
  if (unknown) return html`<h1>${t("order")}</h1><${Empty} text=${t("no_such_order")}><a class="button quiet" href=${`${base}/orders`}>${t("my_orders")}</a><//>`;
  if (order === null) return html`<${Skeleton} lines=${5} />`;
  return html`<${OrderOfSale} given=${order} ...${page} />`;
}

function OrderOfSale({ given, ...page }) {
  const [sale, problem, reload] = useSale(given.sale_id);
  if (sale === null && problem === "unknown") return html`<${OrderOfHiddenSale} given=${given} ...${page} />`;
  if (sale === null) return html`<${NoSale} problem=${problem} />`;
  return html`<${Product} sale=${sale} item=${itemOf(sale, given.item_id)}>
    <${Buying} sale=${sale} reload=${reload} given=${given} ...${page} />
  <//>`;
}

/** Nobody is to know of the sale any more, but who has an order of it can still pay for it. */
function OrderOfHiddenSale({ given, ...page }) {
  const { sale_id: id, round, price_cents, currency, created_at: at } = given;
  const sale = { id, round, price_cents, currency, begins_at: at, ends_at: at, state: "ended", limit_per_buyer: 0 };
  return html`<article class="product plain">
    <div class="gallery"><${Cover} title=${id} /></div>
    <div class="product-text"><h1>${t("order")}</h1><${Buying} sale=${sale} reload=${() => {}} given=${given} ...${page} /></div>
  </article>`;
}

function NoSale({ problem }) {
  if (problem === null) return html`<${Skeleton} lines=${5} />`;
  const text = problem === "unknown" ? t("no_such_sale") : t("offline");
  if (isEmbedded()) return html`<${Empty} text=${text} />`;
  return html`<h1>${t("a_sale")}</h1><${Empty} text=${text}><a class="button quiet" href=${`${base}/`}>${t("all_sales")}</a><//>`;
}

/** Asked again every few seconds, which a CDN answers, and by nobody who does not look. */
function useSale(saleId) {
  const [sale, setSale] = useState(() => firstSale(saleId));
  const [problem, setProblem] = useState(null);
  const [asked, setAsked] = useState(0);
  useRepeated(
    async (isOver) => {
      let waitMs = 4_000 + 2_000 * Math.random();
      const askedMs = performance.now();
      try {
        const found = await call("GET", `/v1/sales/${encodeURIComponent(saleId)}`, { cache: "default" });
        if (isOver()) return Infinity;
        setSale({ ...found, askedMs });
        setProblem(null);
        const untilBegin = Date.parse(found.begins_at) - nowMs();
        if (untilBegin > 0) waitMs = Math.min(waitMs * 4, untilBegin + 1000 * Math.random());
        else if (["paused", "sold_out"].includes(found.state)) waitMs /= 2; // somebody waits for the button
      } catch (error) {
        const gone = error instanceof Refused && error.status === 404;
        setProblem(gone ? "unknown" : "offline");
        waitMs = gone ? Infinity : backoffMs(3);
      }
      return waitMs;
    },
    [saleId, asked],
  );
  return [sale, problem, () => setAsked((times) => times + 1)];
}

function Product({ sale, item, children }) {
  const now = nowMs();
  const Heading = isEmbedded() ? "h2" : "h1";
  const door = useDoor(sale);
  useEffect(() => {
    if (!isEmbedded()) document.title = sale.title;
  });
  return html`<article class=${`product${sale.images.length > 0 || item?.image ? "" : " plain"}`}>
    <${Gallery} sale=${sale} item=${item} />
    <div class="product-text">
      <${Heading} class=${`title ${lengthOf(sale.title)}`} dir="auto">${sale.title}<//>
      <${Price} sale=${sale} item=${item} />
      <${Left} sale=${sale} />
      <div class="about">
        <p class="facts">${stock(sale)}</p>
        <p class="facts" data-period>${period(sale, now)}</p>
        ${sale.timezone !== "UTC" && html`<p class="facts" data-period-there>${periodThere(sale, now)}</p>`}
        ${door !== null && html`<${door.AudienceFacts} sale=${sale} now=${now} />`}
        ${sale.next_rounds.length > 0 && html`<p class="facts">${repetition(sale, now)}</p>`}
      </div>
      ${children}
    </div>
    <${Details} sale=${sale} />
  </article>`;
}

function lengthOf(title) {
  const width = [...title].reduce((sum, char) => sum + (char > "\u2e7f" ? 2 : 1), 0);
  return width > VERY_LONG_TITLE ? "long very-long" : width > LONG_TITLE ? "long" : "";
}

function repetition({ repeat, next_rounds: [next] }, now) {
  const values = { time: roundTime(Date.parse(next), now) };
  return t(repeat === "daily" ? "again_daily" : "again", values);
}

export function Buying({ sale, reload, me, onSignIn, onSignedOut, onOrder = () => {}, onRefused = () => {}, given = null, turn = false, unpaid = null, itemId = null, onChoose = () => {} }) {
  const now = useNow(100);
  const [order, setOrder] = useState(given);
  const [known, setKnown] = useState(given !== null || !me);
  const [phase, setPhase] = useState({ kind: "idle" });
  const [quantity, setQuantity] = useState(1);
  const [held, setHeld] = useState({}); // units that count towards the limit, by order
  const [lapses, setLapses] = useState({}); // when orders lapsed or were cancelled, by order
  const [question, setQuestion] = useState(null);
  const [via, setVia] = useState(undefined);
  const [openFrom] = useState(() => JITTER_MS * Math.random());
  const pass = usePass(sale, given === null ? me : null);
  const wanted = useRef(true);
  const sending = useRef(false);
  const over = useRef(new Set()); // orders that were given back, which the gate learns a moment later
  useEffect(() => () => {
    wanted.current = false;
  }, []);

  const take = (newer) =>
    setOrder((older) => {
      const told = older?.order_id === newer.order_id && !isNewer(newer.state, older.state);
      return told && (older.replaced_by ?? null) === (newer.replaced_by ?? null) ? older : { ...older, ...newer };
    });

  useFocusKept(".panel");
  const send = async (pressed) => {
    if (sending.current) return;
    sending.current = true;
    setPhase({ kind: "sending", tries: 0 });
    try {
      const accepted = await claim(sale, pressed, me.token, {
        isWanted: () => wanted.current,
        pass,
        isPassing: ({ code, problem }) => code === "limit_reached" && problem.order_ids[0] && problem.order_ids.every((id) => over.current.has(id)),
        onTrouble: (error, tries) => wanted.current && setPhase({ kind: "sending", tries, code: error.code ?? "offline" }),
      });
      if (accepted === null) return;
      answered(me.user, sale);
      const price = priceOf(sale, accepted.item_id) * accepted.quantity;
      const title = itemOf(sale, accepted.item_id)?.title;
      setOrder({ price_cents: price, currency: sale.currency, pay_before: null, item_title: title, ...accepted });
      setPhase({ kind: "idle" });
    } catch (error) {
      if (error.status === 401) return onSignedOut(); // the press is kept: it goes on after signing in
      answered(me.user, sale);
      if (error.problem?.order) {
        setOrder(error.problem.order); // it could not be written, and says so itself
        return setPhase({ kind: "idle" });
      }
      const code = error.code === "sold_out" && error.problem?.item_id ? "item_sold_out" : error.code;
      setPhase({ kind: "refused", code, problem: error.problem ?? {}, atMs: performance.now() });
      onRefused(code, error.problem ?? {});
      if (error.code === "not_started") syncClock().catch(() => {});
      reload();
    } finally {
      sending.current = false;
    }
  };

  // What is true already: an answer that got lost, or an order from before.
  useRepeated(async (isOver) => {
    if (!me || given !== null) return Infinity;
    const pending = pressOf(me.user, sale);
    if (pending !== null) {
      setKnown(true);
      send(pending);
      return Infinity;
    }
    try {
      const { orders } = await call("GET", "/v1/orders?limit=50", { token: me.token });
      if (isOver()) return Infinity;
      const here = orders.filter((other) => other.sale_id === sale.id && other.round === sale.round);
      const found = here.find((other) => isLive(other.state)) ?? here[0];
      if (found) setOrder((chosen) => chosen ?? { ...found, found_as: found.state });
      setHeld((newer) => ({ ...Object.fromEntries(here.map(units)), ...newer }));
      setLapses((newer) => ({ ...Object.fromEntries(here.filter(hasLapsed).map(lapse)), ...newer }));
      setKnown(true);
      return Infinity;
    } catch (error) {
      if (error.status === 401) return onSignedOut();
      return backoffMs(2);
    }
  }, [me?.token]);

  useEffect(() => {
    if (order === null) return;
    setHeld((older) => ({ ...older, ...Object.fromEntries([units(order)]) }));
    if (hasLapsed(order)) setLapses((older) => ({ ...older, ...Object.fromEntries([lapse(order)]) }));
    onOrder(order);
  }, [order?.order_id, order?.state]);
  const left = sale.limit_per_buyer - Object.values(held).reduce((sum, many) => sum + many, 0);

  const watched = order !== null && goesOn(order.state) ? order.order_id : null;
  useEffect(() => {
    if (watched === null || !me) return undefined;
    return watch(watched, me.token, { onOrder: take, onVia: setVia, onDenied: onSignedOut });
  }, [watched, me?.token]);

  const lapsed = order !== null && mayBePaidLate(order, now) ? order.order_id : null;
  useEffect(() => {
    if (lapsed === null || !me) return undefined;
    return watchLate(order, me.token, { onOrder: take, nowMs });
  }, [lapsed, me?.token]);

  useAskedAhead(sale, me);
  const show = async (id) => {
    try {
      const other = await call("GET", `/v1/orders/${id}`, { token: me.token });
      setOrder({ ...other, found_as: other.state });
      setPhase({ kind: "idle" });
    } catch (error) {
      if (error.status === 401) onSignedOut();
    }
  };

  const armed = useArmed(order?.state);
  const change = async (verb) => {
    setPhase({ kind: verb });
    try {
      const changed = await act(order, verb, me.token, () => wanted.current);
      if (/^https?:/.test(changed.pay_url ?? "")) return location.assign(changed.pay_url); // busy until we are gone
      if (changed.pay_qr) setOrder((older) => ({ ...older, pay_qr: changed.pay_qr }));
      else take(changed);
      setPhase({ kind: "idle" });
    } catch (error) {
      if (error.status === 401) return onSignedOut();
      if (error.problem?.order) take(error.problem.order);
      setPhase(error.code === "order_over" ? { kind: "idle" } : { kind: "trouble", code: error.code });
    }
  };
  useEffect(() => {
    // Who comes back with the browser's button finds the page as it was left.
    const awake = (event) => event.persisted && setPhase({ kind: "idle" });
    addEventListener("pageshow", awake);
    return () => removeEventListener("pageshow", awake);
  }, []);
  const waitS = waitAfter(sale, Object.keys(lapses).length + 1);
  const askCancel = () =>
    setQuestion({
      title: t("cancel_title"),
      effect: sentences(sale.lined ? t("cancel_line") : counted("cancel_effect", order.quantity), sale.lined ? sale.order !== "press" && t("line_lapsed_once") : waitS > 0 && t("cancel_wait", { time: spoken(waitS) })),
      yes: t("cancel_yes"),
      no: t("cancel_no"),
      act: () => change("cancel"),
    });

  const state = afterRefusal(stateNow(sale, now, openFrom), phase, sale);
  const buy = () => {
    if (phase.kind === "sending") return;
    if (order !== null && !isLive(order.state)) over.current.add(order.order_id);
    setOrder(null);
    send(press(me.user, sale, quantity, itemId));
  };
  // What the gate has said of an item counts until there is news of the sale.
  const isGone = (item) => item.sold_out || (phase.code === "item_sold_out" && phase.problem.item_id === item.item_id && sale.askedMs <= phase.atMs + CACHED_MS);
  const choose = (chosen) => {
    onChoose(chosen);
    if (phase.kind === "refused") setPhase({ kind: "idle" });
  };
  const another = () => {
    if (order !== null && !isLive(order.state)) over.current.add(order.order_id);
    setOrder(null);
    setQuantity(1);
    setPhase({ kind: "idle" });
  };
  const item = itemOf(sale, itemId);
  const offers = { sale, state, now, me, pass, left, quantity, setQuantity, onBuy: buy, onSignIn, known, item, isGone, onChoose: choose };

  if (phase.kind === "sending") return html`<${Sending} phase=${phase} pass=${pass} />`;
  if (order !== null) {
    const buys = given === null && state === "open";
    // Who has cancelled does not want it: no button asks them to try again.
    const byChoice = order.state === "cancelled" && !order.closed_by;
    const coolsMs = buys ? Math.max(0, ...Object.values(lapses)) + 1000 * waitAfter(sale, Object.keys(lapses).length) - now : 0;
    const again = !isLive(order.state) && buys && !byChoice && coolsMs > 0 ? html`<div class="action"><button type="button" class="button primary" data-cools disabled>${t("again_in", { time: shortDuration(coolsMs) })}</button></div>` : !isLive(order.state) && buys && !byChoice ? html`<${Choice} ...${offers} /><${BuyButton} ...${offers} again=${true} />` : null;
    const gives = order.state === "paid" && (sale.vouchers || order.codes !== undefined);
    const codes = gives && html`<${Codes} key=${order.order_id} order=${order} token=${me.token} onSignedOut=${onSignedOut} />`;
    return html`<${OrderPanel} order=${order} sale=${sale} now=${now} via=${via} phase=${phase} armed=${armed} again=${again} codes=${codes} turn=${turn} onPay=${() => change("pay")} onCancel=${askCancel} onShow=${show}>
        ${order.state === "paid" && buys && left > 0 && html`<p class="more"><button type="button" class="link" onClick=${another}>${t("buy_another")}</button></p>`}
        ${byChoice && buys && coolsMs > 0 && html`<p class="more" data-cools>${t("again_in_label")} <span class="digits" role="timer">${shortDuration(coolsMs)}</span></p>`}
        ${byChoice && buys && coolsMs <= 0 && html`<p class="more"><button type="button" class="link" data-action="after-all" onClick=${another}>${t("buy_after_all")}</button></p>`}
      <//>
      <${Confirm} question=${question} onClose=${() => setQuestion(null)} />`;
  }
  return html`<${Offer} ...${offers} phase=${phase} unpaid=${unpaid} onShow=${show} />`;
}

const hasLapsed = (order) => order.state === "expired" || (order.state === "cancelled" && !order.closed_by);
const lapse = (order) => [order.order_id, order.closed_at ? Date.parse(order.closed_at) : nowMs()];
const DOUBLINGS_MAX = 12;
const COOL_DOWN_S_MAX = 3_600;

/** How long the gate makes a buyer wait who has let so many orders lapse: as admission.py has it. */
const waitAfter = ({ cool_down_s: first = 0 }, many) => (many === 0 ? 0 : Math.min(first * 2 ** Math.min(many - 1, DOUBLINGS_MAX), COOL_DOWN_S_MAX));

const units = (order) => [order.order_id, isLive(order.state) ? order.quantity : 0];

/** So near to the begin that it is still known then, and not everybody at once. */
function useAskedAhead(sale, me) {
  useEffect(() => {
    if (!isEmbedded() || !me) return undefined;
    const untilBegin = Date.parse(sale.begins_at) - nowMs();
    const waitMs = untilBegin - AHEAD_MS * (0.2 + 0.8 * Math.random());
    const timer = setTimeout(() => askAhead(sale, me.token), Math.min(Math.max(0, waitMs), TIMER_MS_MAX));
    return () => clearTimeout(timer);
  }, [sale.id, sale.begins_at, me?.token]);
}

function useArmed(state) {
  const [armed, setArmed] = useState(false);
  useEffect(() => {
    setArmed(false);
    const timer = setTimeout(() => setArmed(true), UNARMED_MS);
    return () => clearTimeout(timer);
  }, [state]);
  return armed;
}

/** The list may be seconds old; the clock is not. */
function stateNow(sale, now, laterMs) {
  if (isClockSet() && now >= Date.parse(sale.ends_at)) return "ended";
  if (sale.state !== "scheduled") return sale.state;
  return isClockSet() && now >= Date.parse(sale.begins_at) + laterMs ? "open" : "scheduled";
}

// What a refusal says of the sale itself.
const TOLD = { sold_out: "sold_out", paused: "paused", ended: "ended", not_started: "scheduled", unknown_sale: "ended" };

/** What the gate has said counts until there is news of the sale: text and button never contradict each other. */
function afterRefusal(state, { kind, code, atMs }, sale) {
  const isNews = sale.askedMs > atMs + CACHED_MS;
  return kind === "refused" && code in TOLD && !isNews ? TOLD[code] : state;
}

function Offer({ phase, unpaid, onShow, ...offers }) {
  // How many is chosen at the button, in sight with it, and also before the sale begins: nothing moves under a finger then.
  const { sale, state, now, me, pass, left, quantity, setQuantity } = offers;
  const begins = Date.parse(sale.begins_at);
  const ends = Date.parse(sale.ends_at);
  // Who may have one and has one is led there: to press again would only be refused again.
  // Who has to wait is told for how long, and then what everybody is told.
  const againMs = phase.code === "cooling_down" ? Date.parse(phase.problem.again_at) - now : 0;
  const holds = phase.code === "cooling_down" ? againMs > 0 : (TOLD[phase.code] ?? state) === state;
  const wanted = phase.code === "item_sold_out" ? itemOf(sale, phase.problem.item_id) : null;
  const itemIsBack = wanted !== null && state === "open" && !offers.isGone(wanted);
  const refused = phase.kind === "refused" && holds && !itemIsBack;
  const isBack = itemIsBack || (phase.kind === "refused" && phase.code === "sold_out" && !refused && state === "open");
  const has = phase.code === "limit_reached" && (sale.limit_per_buyer === 1 || left < 1) && phase.problem.order_ids[0];
  // Nor is it for whom it is not open.
  const isOut = refused && phase.code === "not_invited";
  return html`<div class="panel" tabindex="-1">
      ${state === "scheduled" && html`<${Countdown} label=${t("begins_in_label")} leftMs=${begins - now} /><${Ahead} sale=${sale} now=${now} />`}
      ${state === "open" && !refused && !isBack && html`<${UntilEnd} leftMs=${ends - now} />`}
      ${state === "open" && againMs > 0 && html`<${Countdown} label=${t("again_in_label")} leftMs=${againMs} />`}
      <div role="status" aria-live="polite">
        ${refused ? html`<${Refusal} phase=${phase} limit=${sale.limit_per_buyer} listed=${sale.waiting_list} now=${now} onShow=${onShow} />` : isBack ? html`<${Said} state="open" title=${t("back_title")} text=${t("back_text")} />` : ["paused", "sold_out", "ended"].includes(state) && html`<${Said} state=${state} title=${t(`sale_${state}`)} text=${state === "sold_out" ? explainedSoldOut(unpaid) : t(`explain_${state}`)} />`}
      </div>
      ${state !== "ended" && html`<${PassNote} pass=${pass} />`}
      <${Choice} ...${offers} />
    </div>
    ${has ? html`<div class="action"><${OrderLink} id=${has} look="button primary" onShow=${onShow}>${t("see_order")}<//></div>` : isOut ? html`<${OtherSales} />` : html`<${BuyButton} ...${offers} unpaid=${unpaid} waits=${againMs > 0}>
      ${["scheduled", "open"].includes(state) && me && left > 1 && html`<${Quantity} most=${left} value=${quantity} unitCents=${priceOf(sale, offers.item?.item_id)} currency=${sale.currency} onChange=${setQuantity} />`}
    <//>`}`;
}

const explainedSoldOut = (unpaid) => (unpaid === null ? t("explain_sold_out") : unpaid === 0 ? t("explain_sold_out_paid") : counted("explain_sold_out_unpaid", unpaid));

/** Also before the sale begins: then there is time to choose. */
const Choice = ({ sale, state, item, isGone, onChoose }) =>
  sale.items && state !== "ended" && html`<${ItemChoice} sale=${sale} chosen=${item?.item_id} isGone=${isGone} onChoose=${onChoose} />`;

const Said = ({ state, title, text }) => html`<p class="headline" data-state=${state}>${title}</p><p class="result">${text}</p>`;

/** Seconds matter on the last day only. */
function UntilEnd({ leftMs }) {
  if (leftMs < DAY_MS) return html`<${Countdown} label=${t("ends_in_label")} leftMs=${leftMs} />`;
  return html`<div><p class="headline" data-state="open">${t("open_title")}</p><p class="result">${t("open_text")}</p></div>`;
}

/** Where there is nothing to do here. In a page of a shop, that has its own ways. */
const OtherSales = () => !isEmbedded() && html`<div class="action"><a class="button quiet" href=${`${base}/`}>${t("all_sales")}</a></div>`;

function BuyButton({ sale, state, now, me, quantity, onBuy, onSignIn, known, item, isGone, again = false, waits = false, unpaid = null, children }) {
  if (state === "open" && !me) {
    if (!canSignIn()) return html`<div class="action"><p class="notice">${t("come_from_shop")}</p></div>`;
    return html`<div class="action"><button type="button" class="button primary" onClick=${onSignIn}>${t(priceOf(sale, item?.item_id) > 0 ? "sign_in_to_buy" : "sign_in_to_get")}</button></div>`;
  }
  if (state === "ended") return html`<${OtherSales} />`;
  const price = money(priceOf(sale, item?.item_id) * quantity, sale.currency);
  const unchosen = sale.items && item === null;
  const gone = item !== null && isGone(item);
  const costs = priceOf(sale, item?.item_id) > 0;
  const open = unchosen ? t("choose_first") : gone ? t("sale_sold_out") : t(again ? "buy_again" : costs ? "buy" : "buy_free", { price });
  const label = {
    scheduled: t("begins_at", { time: roundTime(Date.parse(sale.begins_at), now) }),
    open: known ? open : t("loading"),
    paused: t("sale_paused"),
    sold_out: t("sale_sold_out"),
  }[state];
  return html`<div class="action">
    ${children}
    <button type="button" class="button primary" data-action="buy" disabled=${state !== "open" || !known || waits || unchosen || gone} onClick=${onBuy}>${label}</button>
    ${!me && canSignIn() && !(state === "sold_out" && unpaid === 0) && html`<button type="button" class="link" onClick=${onSignIn}>${t(state === "sold_out" ? "sign_in_for_returns" : "sign_in_ahead")}</button>`}
  </div>`;
}

function Quantity({ most, value, unitCents, currency, onChange }) {
  return html`<div class="quantity" role="group" aria-label=${t("quantity")}>
    ${value > 1 ? "" : html`<span class="label" aria-hidden="true">${t("quantity")}</span>`}<span class="sum" aria-live="polite">${value > 1 ? sum(value, unitCents, currency) : ""}</span>
    <span class="stepper"><button type="button" class="button quiet" aria-label=${t("fewer")} disabled=${value <= 1} onClick=${() => onChange(value - 1)}>−</button>
    <output>${value}</output>
    <button type="button" class="button quiet" aria-label=${t("more")} disabled=${value >= most} onClick=${() => onChange(value + 1)}>+</button></span>
  </div>`;
}
