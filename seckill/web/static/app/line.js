// One's place in the line of a sale. How far the line has come is the same for everybody, so that is what is asked for
// again and again; one's own entry only when it may have changed.

import { useState } from "../vendor/preact/hooks.mjs";
import { backoffMs, base, call, canSignIn } from "./api.js";
import { addTexts, count, t } from "./i18n.js";
import { ItemChoice, itemOf } from "./items.js";
import { STRINGS } from "./line_strings.js";
import { Countdown } from "./panels.js";
import { Confirm, html, useNow, useRepeated } from "./ui.js";

addTexts(STRINGS);

const EVERY_MS = 3_000;
const OWN_EVERY_MS = 30_000; // chances change slowly
const OVER = ["left", "passed_over"];
const LAPSED = ["expired", "cancelled"];

const storedAt = (me, sale) => `seckill.entry.${me.user}.${sale.id}.${sale.round}`;

function useEntry(sale, me, onSignedOut) {
  const [entry, setEntry] = useState(null);
  const [line, setLine] = useState(null);
  const entryId = entry?.entry_id ?? (me && localStorage.getItem(storedAt(me, sale)));
  const take = (found) => {
    localStorage.setItem(storedAt(me, sale), found.entry_id);
    setEntry({ ...found, readMs: performance.now() });
  };
  useRepeated(
    async (isOver) => {
      try {
        const far = await call("GET", `/v1/sales/${sale.id}/line?round=${sale.round}`, { cache: "default" });
        if (isOver()) return Infinity;
        setLine(far);
        if (!entryId || !me) return EVERY_MS + 1_000 * Math.random();
        const waits = entry?.state === "waiting";
        const isDue = entry === null || (waits && (far.served_up_to >= entry.place || (far.drawn && entry.place === null) || performance.now() - entry.readMs > OWN_EVERY_MS));
        const isServed = entry?.order_id && performance.now() - entry.readMs > EVERY_MS;
        if (isServed) {
          const { state } = await call("GET", `/v1/orders/${entry.order_id}`, { token: me.token });
          if (!isOver()) take({ ...entry, order_state: state });
        } else if (isDue) {
          const found = await call("GET", `/v1/entries/${entryId}`, { token: me.token });
          if (!isOver()) take(found);
        }
        return EVERY_MS + 1_000 * Math.random();
      } catch (error) {
        if (error.status === 401) return onSignedOut();
        if (error.status === 404 && entryId) localStorage.removeItem(storedAt(me, sale));
        return backoffMs(4);
      }
    },
    [me?.token, sale.id, sale.round, entry?.entry_id, entry?.state, entry?.readMs],
  );
  return [entry, line, take];
}

/** In the place of the button that buys. */
export function LinePanel({ sale, me, onSignIn, onSignedOut, itemId = null, onChoose = () => {} }) {
  const now = useNow(500);
  const [entry, line, take] = useEntry(sale, me, onSignedOut);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const [question, setQuestion] = useState(null);
  const kind = sale.order === "press" ? "waiting_list" : sale.order;
  const ended = sale.state === "ended";
  const act = async (method, path, body) => {
    setBusy(true);
    setProblem("");
    try {
      take(await call(method, path, { token: me.token, body }));
    } catch (error) {
      if (error.status === 401) return onSignedOut();
      setProblem(t("line_refused", { detail: error.problem?.detail ?? t("offline") }));
    } finally {
      setBusy(false);
    }
  };
  const join = () => act("POST", `/v1/sales/${sale.id}/entries`, itemId === null ? {} : { item_id: itemId });
  const askLeave = () =>
    setQuestion({ title: t("line_leave_title"), effect: t("line_leave_effect"), yes: t("line_leave"), no: t("cancel_no"), act: () => act("DELETE", `/v1/entries/${entry.entry_id}`) });
  const isIn = entry !== null && !OVER.includes(entry.state);
  const begins = Date.parse(sale.begins_at);
  const unchosen = sale.items && itemOf(sale, itemId) === null;
  const label = t(kind === "waiting_list" ? "line_join_list" : kind === "draw" && now < begins ? "line_join_draw" : "line_join");
  return html`<div class="panel line" tabindex="-1" data-line=${entry?.state ?? "none"}>
      ${now < begins && !line?.drawn && html`<${Countdown} label=${t("begins_in_label")} leftMs=${begins - now} />`}
      <div role="status" aria-live="polite">
        ${entry === null ? html`<p class="headline" data-state="open">${t(ended ? "line_over" : `line_${kind}`)}</p><p class="result">${t(ended ? "line_over_text" : `line_${kind}_why`)}</p>` : html`<${Standing} entry=${entry} line=${line} ended=${ended} />`}
      </div>
      ${!isIn && !ended && sale.items && html`<${ItemChoice} sale=${sale} chosen=${itemId} isGone=${() => false} onChoose=${onChoose} />`}
      ${line?.paused && html`<p class="facts">${t("line_paused")}</p>`}
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    </div>
    <div class="action">
      ${entry?.order_id ? html`<a class="button primary" href=${`${base}/orders/${entry.order_id}`}>${t("line_see_order")}</a>` : isIn ? html`<button type="button" class="button quiet" data-action="leave" disabled=${busy || ended} onClick=${askLeave}>${t("line_leave")}</button>` : !ended && (me ? html`<button type="button" class="button primary" data-action="join" disabled=${busy || unchosen} onClick=${join}>${unchosen ? t("choose_first") : label}</button>` : canSignIn() && html`<button type="button" class="button primary" onClick=${onSignIn}>${t("sign_in")}</button>`)}
    </div>
    <${Confirm} question=${question} onClose=${() => setQuestion(null)} />`;
}

function Standing({ entry, line, ended }) {
  const { place, ahead, chance, reason } = entry;
  const state = LAPSED.includes(entry.order_state) ? "lapsed" : entry.state;
  if (state !== "waiting") return html`<p class="headline" data-state=${state}>${t(`line_${state}`)}</p><p class="result">${t(`line_${state}_text`, { reason: reason ?? "" })}</p>`;
  if (ended) return html`<p class="headline" data-state="ended">${t("line_over")}</p><p class="result">${t("line_over_text")}</p>`;
  if (place === null || ahead === null) return html`<p class="headline" data-state="open">${t("line_in")}</p><p class="result">${t("line_undrawn")}</p>`;
  return html`<p class="headline" data-state="open">${t("line_place", { place: count(place) })}</p>
    <p class="result">${t("line_ahead", { ahead: count(ahead), waiting: count(line?.waiting ?? entry.of), units: count(entry.units) })}</p>
    ${line && html`<p class="facts" data-served-up-to>${t("line_served_up_to", { place: count(line.served_up_to) })}</p>`}
    ${line?.unpaid > 0 && html`<p class="facts">${t("line_unpaid", { unpaid: count(line.unpaid) })}</p>`}
    ${chance !== null && html`<p class="facts" data-chance>${t("line_chance", { percent: count(Math.round(100 * chance)) })}</p>`}`;
}
