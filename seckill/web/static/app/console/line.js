// The line of a sale: how far it has come, its draw, who is in it, and what an operator does about it.

import { useRef, useState } from "../../vendor/preact/hooks.mjs";
import { nowMs } from "../clock.js";
import { count, has, readable, shortTime, t } from "../i18n.js";
import { Chip, Confirm, Dialog, html, useRepeated } from "../ui.js";
import { usePolled } from "./data.js";
import { ask, may, told } from "./session.js";
import { asksWhy } from "./why.js";

const EVERY_MS = 1_000;
const DRAW_EVERY_MS = 2_000;
const SERVED_SHOWN = 5; // of those whose turn it was last
const PAGE = 15;
const PAGES_MAX = 1_000;
const PACE_MAX = 100_000;
const SHOWN = ["turn", "waiting", "served", "left", "passed_over"];
const CHIPS = { waiting: "queued", served: "paid", left: "refused", passed_over: "refused" };
const FIGURES = ["waiting", "served", "served_up_to", "units_left", "unpaid"];

export const hasLine = (sale) => sale.order !== "press" || sale.waiting_list;

/** Places are told from where the line has come to: that is known when the first answer is there. */
function useLine(sale, { shown, many, buyer }) {
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  const [again, setAgain] = useState(0);
  const turn = useRef(0);
  useRepeated(
    async (isOver) => {
      const query = new URLSearchParams(buyer === "" ? { limit: many } : { buyer });
      if (buyer === "" && shown !== "turn") query.set("state", shown);
      if (buyer === "") query.set("after", String(after(shown, turn.current, many)));
      try {
        const answer = await ask("GET", `/v1/admin/sales/${sale.id}/line?${query}`);
        if (isOver()) return Infinity;
        setFound(answer);
        setProblem("");
        const moved = answer.line.served_up_to !== turn.current;
        turn.current = answer.line.served_up_to;
        return moved ? EVERY_MS / 4 : EVERY_MS;
      } catch (error) {
        if (!isOver()) setProblem(told(error));
        return EVERY_MS;
      }
    },
    [sale.id, sale.round, shown, many, buyer, again],
  );
  return [found, problem, () => setAgain((times) => times + 1)];
}

/** No one waits at a place up to the turn, so those places need not be read. */
function after(shown, turn, many) {
  const before = { turn: SERVED_SHOWN, waiting: 0, served: many }[shown] ?? turn;
  return Math.max(0, turn - before);
}

/** How it is, in a word. */
function stateOf({ line, closed_at: closed, wants_beacon: wants, fetches_beacon: fetches, beacon }) {
  if (!line.drawn && closed === null) return ["scheduled", "line_is_open"];
  if (!line.drawn && fetches && beacon === null) return ["queued", "line_is_fetching_beacon"];
  if (!line.drawn && wants && beacon === null) return ["paused", "line_is_without_beacon"];
  if (line.paused) return ["paused", "line_is_paused"];
  if (!line.drawn) return ["queued", "line_is_drawn_now"];
  if (line.waiting === 0) return ["ended", "line_is_empty"];
  return line.units_left === 0 ? ["queued", "line_is_out"] : ["open", "line_is_on"];
}

export function LineView({ sale }) {
  const [shown, setShown] = useState("turn");
  const [many, setMany] = useState(PAGE);
  const [buyer, setBuyer] = useState("");
  const [found, trouble, reload] = useLine(sale, { shown, many, buyer });
  const draws = sale.order !== "press";
  const show = (event) => {
    setShown(event.target.value);
    setMany(PAGE);
    setBuyer("");
  };
  if (found === null) return html`<section class="line-of-sale" aria-labelledby="line-title"><h2 id="line-title">${t("the_line")}</h2><p class="facts" role="status">${trouble || t("loading")}</p></section>`;
  const [state, said] = stateOf(found);
  const { line } = found;
  return html`<section class="line-of-sale" aria-labelledby="line-title" data-line-state=${said}>
    <header class="line-head"><h2 id="line-title">${t(draws ? `line_of_${sale.order}` : "line_of_list")}</h2><${Chip} state=${state} label=${t(said)} /></header>
    <dl class="stats">
      ${FIGURES.map((name) => html`<div key=${name} data-figure=${name}><dt>${t(`line_figure_${name}`)}</dt><dd>${line[name] === null || (name === "served_up_to" && !line.drawn) ? "–" : count(line[name])}</dd></div>`)}
      <div data-figure="pace"><dt>${t("line_figure_pace")}</dt><dd>${found.serve_per_s === null ? t("pace_free") : t("pace_of", { pace: count(found.serve_per_s) })}</dd></div>
    </dl>
    ${may("operator") && html`<${LineActions} sale=${sale} found=${found} onChanged=${reload} />`}
    ${draws && sale.published && html`<${DrawFacts} sale=${sale} />`}
    <div class="filters">
      <label class="field"><span>${t("line_shown")}</span><select name="shown" value=${shown} onChange=${show}>${SHOWN.map((each) => html`<option key=${each} value=${each}>${t(`line_shown_${each}`)}</option>`)}</select></label>
      <${FindBuyer} buyer=${buyer} onFind=${setBuyer} />
    </div>
    <p class="problem" role="alert">${trouble}</p>
    <${Entries} entries=${found.entries} turn=${buyer === "" && shown === "turn" && line.drawn ? line.served_up_to : null} drawn=${line.drawn} sought=${buyer} onChanged=${reload} />
    ${buyer === "" && found.next !== null && many < PAGES_MAX && html`<button type="button" class="button quiet small" data-action="more" onClick=${() => setMany(Math.min(PAGES_MAX, many + 3 * PAGE))}>${t("more_entries")}</button>`}
  </section>`;
}

function FindBuyer({ buyer, onFind }) {
  const [typed, setTyped] = useState("");
  const submit = (event) => {
    event.preventDefault();
    onFind(typed.trim());
  };
  const leave = () => {
    setTyped("");
    onFind("");
  };
  return html`<form class="find" role="search" onSubmit=${submit}>
    <label class="field"><span>${t("filter_buyer")}</span><input name="buyer" autocomplete="off" value=${typed} onInput=${(event) => setTyped(event.target.value)} /></label>
    <button type="submit" class="button quiet small">${t("line_find")}</button>
    ${buyer !== "" && html`<button type="button" class="link" onClick=${leave}>${t("line_all")}</button>`}
  </form>`;
}

function LineActions({ sale, found, onChanged }) {
  const [open, setOpen] = useState(null);
  const [question, setQuestion] = useState(null);
  const [problem, setProblem] = useState("");
  const path = `/v1/admin/sales/${sale.id}/line`;
  const change = (body) => async ({ reason }) => {
    try {
      setProblem("");
      await ask("PATCH", path, body, { reason });
    } catch (error) {
      setProblem(told(error));
    }
    onChanged();
  };
  const askToPause = () => setQuestion(asksWhy({ title: t("line_pause_title"), effect: t("line_pause_effect"), yes: t("line_pause"), act: change({ paused: true }) }));
  const over = sale.state === "ended";
  const close = () => setOpen(null);
  const done = () => {
    close();
    onChanged();
  };
  const wantsBeacon = found.wants_beacon && found.beacon === null && !found.fetches_beacon;
  return html`<div class="actions">
    ${found.line.paused
      ? html`<button type="button" class="button primary small" data-action="resume-line" onClick=${change({ paused: false })}>${t("line_resume")}</button>`
      : html`<button type="button" class="button quiet small" data-action="pause-line" disabled=${over} onClick=${askToPause}>${t("line_pause")}</button>`}
    <button type="button" class="button quiet small" data-action="pace" disabled=${over} onClick=${() => setOpen("pace")}>${t("line_pace")}</button>
    ${wantsBeacon && html`<button type="button" class="button primary small" data-action="beacon" disabled=${over || found.closed_at === null} onClick=${() => setOpen("beacon")}>${t("line_beacon")}</button>`}
    ${wantsBeacon && found.closed_at === null && html`<span class="facts">${t("line_beacon_later")}</span>`}
    <p class="problem" role="alert">${problem}</p>
    <${Confirm} question=${question} onClose=${() => setQuestion(null)} />
    <${Dialog} open=${open === "pace"} title=${t("line_pace")} onClose=${close}><${PaceForm} path=${path} pace=${found.serve_per_s} onDone=${done} onClose=${close} /><//>
    <${Dialog} open=${open === "beacon"} title=${t("line_beacon")} onClose=${close}><${BeaconForm} path=${path} onDone=${done} onClose=${close} /><//>
  </div>`;
}

/** One field, what it does, and what is wrong with it. `send` gives an error to show, or throws what `ask` throws. */
function OneField({ name, effect, label, attributes = {}, danger = false, initial = "", yes, send, onDone, onClose }) {
  const [typed, setTyped] = useState(initial);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const wrong = await send(typed.trim());
      if (wrong) setProblem(wrong);
      else onDone();
    } catch (error) {
      setProblem(told(error));
    } finally {
      setBusy(false);
    }
  };
  return html`<form novalidate data-form=${name} onSubmit=${submit}>
    <p>${effect}</p>
    <label class="field"><span>${label}</span>
      <input name=${name} autocomplete="off" value=${typed} onInput=${(event) => setTyped(event.target.value)} aria-describedby=${`wrong-${name}`} autofocus ...${attributes} /></label>
    <p class="problem" id=${`wrong-${name}`} role="alert">${problem}</p>
    <div class="buttons">
      <button type="submit" class=${`button ${danger ? "danger" : "primary"}`} disabled=${busy}>${yes}</button>
      <button type="button" class="button quiet" onClick=${onClose}>${t("back")}</button>
    </div>
  </form>`;
}

function PaceForm({ path, pace, ...rest }) {
  const send = async (typed) => {
    if (typed !== "" && !(/^[0-9]{1,6}$/.test(typed) && Number(typed) >= 1 && Number(typed) <= PACE_MAX)) return t("wrong_whole", { least: 1, most: count(PACE_MAX) });
    await ask("PATCH", path, { serve_per_s: typed === "" ? null : Number(typed) });
    return null;
  };
  return html`<${OneField} name="serve_per_s" effect=${t("line_pace_effect")} label=${t("field_serve_per_s")} attributes=${{ inputmode: "numeric" }} initial=${pace === null ? "" : String(pace)} yes=${t("line_pace_yes")} send=${send} ...${rest} />`;
}

function BeaconForm({ path, ...rest }) {
  const send = async (typed) => {
    if (typed === "") return t("line_beacon_empty");
    await ask("PATCH", path, { beacon: typed });
    return null;
  };
  return html`<${OneField} name="beacon" effect=${t("line_beacon_effect")} label=${t("line_beacon_field")} attributes=${{ maxlength: 255 }} danger=${true} yes=${t("line_beacon_yes")} send=${send} ...${rest} />`;
}

function RemoveForm({ entry, ...rest }) {
  const send = async (reason) => {
    if (reason === "") return t("line_remove_why");
    await ask("DELETE", `/v1/admin/entries/${entry.entry_id}`, { reason });
    return null;
  };
  return html`<${OneField} name="reason" effect=${t("line_remove_effect", { buyer: entry.buyer })} label=${t("act_reason")} attributes=${{ maxlength: 255 }} danger=${true} yes=${t("line_remove")} send=${send} ...${rest} />`;
}

/** What is published of it, as buyers see it. */
function DrawFacts({ sale }) {
  const [draw] = usePolled(`/v1/sales/${sale.id}/draw`, DRAW_EVERY_MS);
  if (draw === null) return null;
  const at = (text) => shortTime(Date.parse(text), nowMs());
  const said = draw.drawn_at ? t("line_draw_made", { entries: count(draw.entries), time: at(draw.drawn_at) }) : draw.closed_at ? t("line_draw_closed", { entries: count(draw.entries), time: at(draw.closed_at) }) : t("line_draw_committed");
  const facts = ["commitment", "list_hash", "beacon", "seed"].filter((name) => draw[name]);
  return html`<div class="draw-facts" data-draw=${draw.drawn_at ? "drawn" : draw.closed_at ? "closed" : "committed"}>
    <h3>${t("draw_title")}</h3>
    <p class="facts">${said}</p>
    <dl>${facts.map((name) => html`<div key=${name} data-fact=${name}><dt>${t(`draw_${name}`)}</dt><dd><code>${draw[name]}</code></dd></div>`)}</dl>
  </div>`;
}

const reasonOf = (entry) => (entry.state === "passed_over" && has(`passed_over_${entry.reason}`) ? t(`passed_over_${entry.reason}`) : (entry.reason ?? ""));

function Entries({ entries, turn, drawn, sought, onChanged }) {
  const [removed, setRemoved] = useState(null);
  const close = () => setRemoved(null);
  const done = () => {
    close();
    onChanged();
  };
  if (entries.length === 0) return html`<p class="facts" role="status">${sought === "" ? t("line_nobody") : t("line_not_found", { buyer: sought })}</p>`;
  const first = turn === null ? -1 : entries.findIndex((entry) => entry.place > turn);
  return html`${!drawn && sought === "" && html`<p class="facts">${t("line_no_places")}</p>`}
    <div class="scroll"><table class="pairs entries">
      <thead><tr><th scope="col">${t("place")}</th><th scope="col">${t("buyer")}</th><th scope="col">${t("state")}</th><th scope="col">${t("joined_at")}</th><th scope="col">${t("line_outcome")}</th></tr></thead>
      <tbody>
        ${entries.map(
          (entry, index) => html`<tr key=${entry.entry_id} data-entry=${entry.state} class=${index === first && index > 0 ? "turn" : ""}>
            <td>${entry.place === null ? "–" : count(entry.place)}</td>
            <td class="text">${entry.buyer}${entry.quantity > 1 ? ` × ${count(entry.quantity)}` : ""}</td>
            <td><${Chip} state=${CHIPS[entry.state]} label=${t(`entry_${entry.state}`)} /></td>
            <td>${shortTime(Date.parse(entry.joined_at), nowMs())}</td>
            <td class="text">${entry.order_id ? html`<a href=${`#/orders/${entry.order_id}`}>${readable(entry.order_id)}</a>` : entry.state === "waiting" && may("operator") ? html`<button type="button" class="link" data-action="remove" aria-label=${t("line_remove_of", { buyer: entry.buyer })} onClick=${() => setRemoved(entry)}>${t("line_remove")}</button>` : reasonOf(entry)}</td>
          </tr>`,
        )}
      </tbody>
    </table></div>
    <${Dialog} open=${removed !== null} title=${t("line_remove_title")} onClose=${close}>${removed && html`<${RemoveForm} entry=${removed} onDone=${done} onClose=${close} />`}<//>`;
}
