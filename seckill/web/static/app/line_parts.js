// One's place in the line of a sale. How far the line has come is the same for everybody, so that is what is asked for
// again and again; one's own entry only when it may have changed. Loaded where there is a line (lazily.js).

const EVERY_MS = 3_000;
const OWN_EVERY_MS = 30_000; // chances change slowly
const OVER = ["left", "passed_over"];
const GOES_ON = ["queued", "unpaid"];
const LAPSED = ["expired", "cancelled"];
// A pass that was not accepted may have ended a moment ago. Another will do, or none.
const PASSES_MAX = 3;
const TRIES_MAX = 8;

/** Whose money came late has another order. */
const isLapsed = (order) => LAPSED.includes(order?.state) && !order.replaced_by;
/** There are units, and nobody who waits for them. */
const isFree = (line) => line?.units_left > 0 && line.waiting === 0;

const storedAt = (me, sale) => `seckill.entry.${me.user}.${sale.id}.${sale.round}`;
// What proves later that one had joined: kept when one joins, and not what is said of it afterwards.
const receiptAt = (me, sale) => `seckill.receipt.${me.user}.${sale.id}.${sale.round}`;

export function make({ useRef, useState, backoffMs, base, call, canSignIn, isEmbedded, sleep, count, counted, has, sentences, t, ItemChoice, itemOf, Countdown, OrderLink, PassNote, usePass, isTrouble, Confirm, html, useNow, useRepeated }) {
  function useEntry(sale, me, onSignedOut, onEntry) {
    const [entry, setEntry] = useState(null);
    const [line, setLine] = useState(null);
    const who = me && storedAt(me, sale);
    const entryId = entry?.entry_id ?? (who && localStorage.getItem(who));
    const lookedFor = useRef(null);
    const served = (order) => setEntry((older) => ({ state: "served", order_id: order.order_id, joined_at: order.created_at, ...older, order, readMs: performance.now() }));
    // Its turn may be over by now, which the order tells.
    const withOrder = async (found) => (found.order_id ? { ...found, order: (await call("GET", `/v1/orders/${found.order_id}`, { token: me.token }).catch(() => undefined)) } : found);
    const take = (found) => {
      localStorage.setItem(storedAt(me, sale), found.entry_id);
      setEntry({ ...found, readMs: performance.now() });
      if (found.state !== entry?.state || found.place !== entry?.place) onEntry(found);
    };
    useRepeated(
      async (isOver) => {
        try {
          const far = await call("GET", `/v1/sales/${sale.id}/line?round=${sale.round}`, { cache: "default" });
          if (isOver()) return Infinity;
          setLine(far);
          if (!me) return EVERY_MS + 1_000 * Math.random();
          if (entry?.order_id) {
            // What shows an order that goes on hears of it by itself. One that is over may have been paid late, and one
            // that has failed is made anew.
            const isRead = entry.order && (GOES_ON.includes(entry.order.state) || performance.now() - entry.readMs < OWN_EVERY_MS);
            const hasFailed = entry.order?.state === "failed" && entry.entry_id;
            const found = hasFailed && (await call("GET", `/v1/entries/${entry.entry_id}`, { token: me.token }));
            if (found && (found.order_id !== entry.order_id || found.state !== entry.state)) return isOver() ? Infinity : take(await withOrder(found));
            const order = !isRead && (await call("GET", `/v1/orders/${entry.order_id}`, { token: me.token }));
            if (order && !isOver()) served(order);
          } else if (entryId) {
            const waits = entry?.state === "waiting";
            const isDue = entry === null || (waits && (far.served_up_to >= entry.place || (far.drawn && entry.place === null) || performance.now() - entry.readMs > OWN_EVERY_MS));
            const found = isDue && (await withOrder(await call("GET", `/v1/entries/${entryId}`, { token: me.token })));
            if (found && !isOver()) take(found);
          } else if (lookedFor.current !== who) {
            // Who joined with another browser is in the line here as well.
            const { entries } = await call("GET", `/v1/sales/${sale.id}/entries?round=${sale.round}`, { token: me.token });
            // And who bought before there was a line has an order, and no entry.
            const bought = entries.length === 0 && sale.lined && sale.order === "press" && (await call("GET", "/v1/orders?limit=50", { token: me.token })).orders;
            lookedFor.current = who;
            const order = bought && bought.find((other) => other.sale_id === sale.id && other.round === sale.round);
            const own = entries.length > 0 && (await withOrder(entries[0]));
            if (isOver()) return Infinity;
            if (own) take(own);
            else if (order) served(order);
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
    return [entry, line, take, served];
  }

  /** Joining is harmless to repeat, so a lost answer is asked for again. */
  async function join(sale, me, body, pass) {
    for (let tries = 0; ; tries += 1) {
      try {
        return await call("POST", `/v1/sales/${sale.id}/entries`, { token: me.token, body, pass: await pass.get() });
      } catch (error) {
        const another = error.code === "pass_required" && tries < PASSES_MAX;
        if (another) pass.renew();
        if (!another && (!isTrouble(error) || tries >= TRIES_MAX)) throw error;
        await sleep(Math.max(error.retryAfterMs ?? 0, 0) + backoffMs(tries));
      }
    }
  }

  const refusal = ({ code, problem }, sale) => (has(`refused_${code}`) ? t(`refused_${code}`, { limit: sale.limit_per_buyer, time: "" }) : t("line_refused", { detail: problem?.detail ?? t("offline") }));

  /** In the place of the button that buys. Where the page of an order is not ours, the order is shown here. */
  function LinePanel(shown) {
    const { sale, me, onSignIn, onSignedOut, itemId = null, onChoose = () => {}, onRefused = () => {}, onEntry = () => {}, onOrder = () => {}, Buying } = shown;
    const now = useNow(500);
    const [entry, line, take, served] = useEntry(sale, me, onSignedOut, onEntry);
    const pass = usePass(sale, me);
    const [problem, setProblem] = useState("");
    const [busy, setBusy] = useState(false);
    const [question, setQuestion] = useState(null);
    const [order, setOrder] = useState(null);
    const kind = sale.order === "press" ? "waiting_list" : sale.order;
    const ended = sale.state === "ended";
    const act = async (wanted, then) => {
      setBusy(true);
      setProblem("");
      try {
        then(await wanted());
      } catch (error) {
        if (error.status === 401) return onSignedOut();
        setProblem(refusal(error, sale));
        if (error.code) onRefused(error.code, error.problem);
      } finally {
        setBusy(false);
      }
    };
    const enter = () =>
      act(
        () => join(sale, me, itemId === null ? {} : { item_id: itemId }, pass),
        (found) => {
          localStorage.setItem(receiptAt(me, sale), found.receipt);
          take(found);
        },
      );
    const leave = () =>
      act(
        () => call("DELETE", `/v1/entries/${entry.entry_id}`, { token: me.token }),
        (found) => {
          localStorage.removeItem(receiptAt(me, sale));
          take(found);
        },
      );
    const show = (id) => act(() => call("GET", `/v1/orders/${id}`, { token: me.token }), (found) => setOrder({ ...found, found_as: found.state }));
    if (order !== null) return html`<${Buying} ...${shown} given=${order} />`;
    // One's turn: the order itself, with its clock and what there is to do.
    if (entry?.order && !isLapsed(entry.order)) {
      const heard = (newer) => {
        served(newer);
        onOrder(newer);
      };
      return html`<div class="way" data-line=${entry.state}><${Buying} key=${entry.order_id} ...${shown} given=${entry.order} turn=${true} onOrder=${heard} /></div>`;
    }
    const isIn = entry !== null && !OVER.includes(entry.state);
    const begins = Date.parse(sale.begins_at);
    // An operator may have begun it before the time that this page knows.
    const isBegun = now >= begins || line?.drawn === true;
    const undrawn = kind !== "waiting_list" && !isBegun;
    // A place in a draw that is made is published, so it is the only one; and who was removed stays out.
    const wasDrawn = entry !== null && kind !== "waiting_list" && isBegun && Date.parse(entry.joined_at) < begins;
    // All units are paid for, so none comes back. If the shop adds some, the sale is open again.
    const isGone = sale.state === "sold_out" && line?.units_left === 0 && line.unpaid === 0 && line.waiting === 0;
    const mayJoin = !isIn && !ended && !isGone && !wasDrawn && (entry?.state !== "left" || entry.reason === null);
    const unchosen = sale.items && itemOf(sale, itemId) === null;
    const leaving = kind === "draw" && undrawn ? "line_withdraw" : kind === "waiting_list" ? "line_leave_list" : "line_leave";
    const askLeave = () => setQuestion({ title: t(`${leaving}_title`), effect: t(undrawn ? "line_leave_undrawn_effect" : wasDrawn ? "line_leave_drawn_effect" : "line_leave_effect"), yes: t(leaving), no: t("cancel_no"), act: leave });
    const label = t(kind === "waiting_list" ? "line_join_list" : kind === "draw" && undrawn ? "line_join_draw" : "line_join");
    return html`<div class="panel line" tabindex="-1" data-line=${entry?.state ?? "none"}>
        ${!isBegun && html`<${Countdown} label=${t("begins_in_label")} leftMs=${begins - now} />`}
        <div role="status" aria-live="polite">
          ${entry === null ? html`<${Outside} kind=${kind} state=${sale.state} line=${line} isGone=${isGone} isBegun=${isBegun} />` : html`<${Standing} entry=${entry} line=${line} kind=${kind} ended=${ended} />`}
        </div>
        ${mayJoin && html`<${PassNote} pass=${pass} />`}
        ${mayJoin && sale.items && html`<${ItemChoice} sale=${sale} chosen=${itemId} isGone=${() => false} onChoose=${onChoose} />`}
        ${line?.paused && html`<p class="facts">${t("line_paused")}</p>`}
        ${isEmbedded() && kind !== "waiting_list" && html`<p class="facts"><a href=${`${base}/sales/${sale.id}`} target="_blank" rel="noopener" data-check-draw>${t("line_check_draw")}</a></p>`}
        ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      </div>
      <div class="action">
        ${entry?.order_id ? html`<${OrderLink} id=${entry.order_id} look=${`button ${isLapsed(entry.order) ? "quiet" : "primary"}`} onShow=${show}>${t("line_see_order")}<//>` : isIn ? html`<button type="button" class="button quiet" data-action="leave" disabled=${busy || ended} onClick=${askLeave}>${t(leaving)}</button>` : mayJoin && (me ? html`<button type="button" class="button primary" data-action="join" disabled=${busy || unchosen || pass.state === "refused"} onClick=${enter}>${unchosen ? t("choose_first") : label}</button>` : canSignIn() && html`<button type="button" class="button primary" onClick=${onSignIn}>${t(kind === "draw" && undrawn ? "sign_in_to_draw" : "sign_in_to_join")}</button>`)}
      </div>
      <${Confirm} question=${question} onClose=${() => setQuestion(null)} />`;
  }

  /** What there is to say to those who are not in the line. */
  function Outside({ kind, state, line, isGone, isBegun }) {
    const said = (look, title, text) => html`<p class="headline" data-state=${look}>${t(title)}</p><p class="result">${t(text)}</p>`;
    if (state === "ended") return said("ended", "line_over", "line_over_text");
    if (isGone) return said("sold_out", "sale_sold_out", "line_gone");
    if (kind === "waiting_list") return said("open", "line_waiting_list", "line_waiting_list_why");
    if (state === "sold_out") return said("sold_out", "sale_sold_out", "line_may_return");
    if (isBegun && isFree(line)) return said("open", "line_arrival", "line_free_now");
    if (isBegun) return kind === "draw" ? said("open", "line_drawn", "line_drawn_why") : said("open", "line_arrival", "line_arrival_now");
    return said("open", `line_${kind}`, `line_${kind}_why`);
  }

  function Standing({ entry, line, kind, ended }) {
    const { place, chance, reason } = entry;
    // As it was when the entry was read, or as the line has moved since.
    const ahead = entry.ahead === null ? null : Math.min(entry.ahead, Math.max(0, place - 1 - (line?.served_up_to ?? 0)));
    if (isLapsed(entry.order)) return html`<p class="headline" data-state="lapsed">${t("line_lapsed")}</p><p class="result">${sentences(t(isFree(line) && !ended ? "line_lapsed_offer" : "line_lapsed_text"), !ended && t("line_lapsed_once"))}</p>`;
    const { state } = entry;
    if (state === "served") return html`<p class="headline" data-state="open">${t("line_served")}</p><p class="result">${counted("line_served_text", entry.quantity ?? 1)}</p>`;
    const why = state === "passed_over" && has(`passed_over_${reason}`) ? t(`passed_over_${reason}`) : (reason ?? "");
    if (state !== "waiting") return html`<p class="headline" data-state=${state}>${t(state === "left" && kind === "waiting_list" ? "line_left_list" : `line_${state}`)}</p><p class="result">${t(`line_${state}_text`, { reason: why })}</p>`;
    if (ended) return html`<p class="headline" data-state="ended">${t("line_over")}</p><p class="result">${t("line_over_text")}</p>`;
    if (place === null || ahead === null) return html`<p class="headline" data-state="open">${t("line_in")}</p><p class="result">${t("line_undrawn")}</p>`;
    const servedUpTo = Math.min(line?.served_up_to ?? 0, place - 1);
    return html`<p class="headline place" data-state="open">${t("line_place", { place: count(place) })}</p>
      ${place > 1 && html`<progress max=${place - 1} value=${servedUpTo} aria-label=${t("line_progress")}></progress>`}
      <p class="result" data-ahead=${ahead}>${sentences(ahead === 0 ? t("line_next") : counted("line_ahead", ahead), line?.units_left > 0 && counted("line_units_left", line.units_left), line?.unpaid > 0 && counted("line_unpaid", line.unpaid))}</p>
      ${servedUpTo > 0 && ahead > 0 && html`<p class="facts" data-served-up-to>${t("line_served_up_to", { place: count(line.served_up_to) })}</p>`}
      ${chance !== null && html`<p class="facts" data-chance>${t("line_chance", { percent: count(Math.round(100 * chance)) })}</p>`}`;
  }

  return LinePanel;
}
