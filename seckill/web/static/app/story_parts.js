// How a round went, as a small picture, and its draw, which anybody can check here. Loaded where there is one of the two
// (lazily.js).

import { readReceipt } from "./draw_check.js";
import { worked } from "./worker.js";

const [WIDTH, HEIGHT] = [240, 64];
const IS_OVER = ["sold_out", "ended"];
const PAGE = 5_000;

/** What this browser has seen before the seed was known: kept, so that it can be held against what is said later. */
function witnessed({ sale_id: sale, round, commitment, list_hash: listHash, receipt_key: key, seed }) {
  const place = `seckill.draw.${sale}.${round}`;
  const kept = JSON.parse(localStorage.getItem(place) ?? "{}");
  if (seed !== null) return kept;
  const noted = { commitment: kept.commitment ?? commitment, list_hash: kept.list_hash ?? listHash ?? undefined, receipt_key: kept.receipt_key ?? key };
  localStorage.setItem(place, JSON.stringify(noted));
  return noted;
}

export function make({ useState, backoffMs, call, count, exactTime, nowMs, sentences, spoken, t, html, useRepeated }) {
  /** Asked for again now and then, as any cacheable answer; null: there is none, or not yet. */
  function useAnswer(path, isWanted, everyMs, onFound = () => {}) {
    const [found, setFound] = useState(null);
    useRepeated(
      async (isOver) => {
        if (!isWanted) return Infinity;
        try {
          const answer = await call("GET", path, { cache: "default" });
          if (isOver()) return Infinity;
          setFound(answer);
          onFound(answer);
          return everyMs;
        } catch (error) {
          return error.status >= 400 && error.status < 500 ? 3 * everyMs : backoffMs(3);
        }
      },
      [path, isWanted],
    );
    return isWanted ? found : null;
  }

  function Afterwards({ sale, me, onStory }) {
    const story = useAnswer(`/v1/sales/${sale.id}/story?round=${sale.round}`, IS_OVER.includes(sale.state), 20_000, onStory);
    const goesOn = sale.order !== "press" && sale.state === "sold_out";
    const line = useAnswer(`/v1/sales/${sale.id}/line?round=${sale.round}`, goesOn, 10_000);
    // Nobody who waits for a unit, or has one to pay for, is told how it went.
    const isTold = !goesOn || (line !== null && line.unpaid === 0 && !(line.waiting > 0 && line.units_left !== 0));
    const draw = useAnswer(`/v1/sales/${sale.id}/draw?round=${sale.round}`, sale.order !== "press", 10_000);
    return html`${draw && html`<${DrawPanel} draw=${draw} me=${me} />`}${story && isTold && html`<${StoryPanel} story=${story} />`}`;
  }

  /** Units given out over time. The area says how many, its shape how fast; at its top how many that is, below it when. */
  function Curve({ curve, units, from, to }) {
    const most = Math.max(units, ...curve);
    const points = [0, ...curve].map((given, i) => `${((i * WIDTH) / curve.length).toFixed(1)},${(HEIGHT - (given * HEIGHT) / most).toFixed(1)}`);
    return html`<figure class="sold-over-time">
      <figcaption class="scale"><span>${t(most > units ? "story_curve_again" : "story_curve")}</span><span>${count(most)}</span></figcaption>
      <svg class="curve" viewBox=${`0 -1 ${WIDTH} ${HEIGHT + 2}`} preserveAspectRatio="none" aria-hidden="true">
        <polygon points=${`0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`} />
        <polyline points=${points.join(" ")} />
      </svg>
      <p class="scale"><span>${from}</span><span>${to}</span></p>
    </figure>`;
  }

  function StoryPanel({ story }) {
    const at = (text) => exactTime(Date.parse(text), nowMs());
    const refused = Object.values(story.refused ?? {}).reduce((sum, many) => sum + many, 0);
    const seconds = story.seconds_to_sell_out;
    const isDrawn = new Set(story.curve).size > 1;
    return html`<section class="story" data-story>
      <h2>${t("story_title")}</h2>
      ${isDrawn && html`<${Curve} curve=${story.curve} units=${story.units} from=${at(story.first_unit_at)} to=${at(story.last_unit_at)} />`}
      <p class="facts" data-fact="sold_out">${seconds === null ? t("story_not_sold_out", { given: count(story.units_given - story.returned), units: count(story.units) }) : t(story.returned > 0 ? "story_first_sold_out_in" : "story_sold_out_in", { time: spoken(seconds) })}</p>
      ${story.first_unit_at && story.first_unit_at !== story.last_unit_at && !isDrawn && html`<p class="facts">${t("story_window", { first: at(story.first_unit_at), last: at(story.last_unit_at) })}</p>`}
      ${story.returned > 0 && html`<p class="facts">${t("story_returned", { returned: count(story.returned), resold: count(story.resold) })}</p>`}
      ${story.returned > 0 && seconds !== null && html`<p class="facts" data-fact="kept">${t("story_kept", { kept: count(story.units_given - story.returned), units: count(story.units) })}</p>`}
      ${refused > 0 && html`<p class="facts">${t("story_refused", { many: count(refused) })}</p>`}
    </section>`;
  }

  async function entriesOf({ sale_id: sale, round }) {
    const entries = [];
    for (let after = 0; after !== null; ) {
      const page = await call("GET", `/v1/sales/${sale}/draw/entries?round=${round}&limit=${PAGE}&after=${after}`, { cache: "default" });
      entries.push(...page.entries);
      after = page.entries.length > 0 ? page.next : null;
    }
    return entries;
  }

  function DrawPanel({ draw, me }) {
    const [result, setResult] = useState(null);
    const noted = witnessed(draw);
    const check = async () => {
      setResult("checking");
      try {
        const at = me && `${me.user}.${draw.sale_id}.${draw.round}`;
        const mine = at && localStorage.getItem(`seckill.entry.${at}`);
        const receipt = at && (await readReceipt(localStorage.getItem(`seckill.receipt.${at}`), noted.receipt_key ?? draw.receipt_key, draw.round));
        const entries = await entriesOf(draw);
        // One who came after the list was closed is not in the draw. The receipt, which is kept here, says when that was.
        const told = !receipt && mine && (await call("GET", `/v1/entries/${mine}`, { token: me.token }).catch(() => null));
        const joinedMs = receipt?.joinedMs ?? (told && Date.parse(told.joined_at));
        // Nor is one who left before that.
        const hasLeft = told && told.state === "left" && told.place === null;
        const wasInTime = joinedMs < Date.parse(draw.closed_at) && !hasLeft;
        const found = await worked("./draw_work.js", { draw: { ...draw, entries }, noted: { ...noted, entry_id: wasInTime ? (receipt?.entryId ?? mine) : undefined } });
        setResult({ ...found, isSigned: receipt?.isSigned ?? null });
      } catch {
        setResult("unreachable");
      }
    };
    const said = draw.seed !== null ? "drawn" : draw.list_hash === null ? "committed" : "closed";
    const shown = [["commitment", draw.commitment], ["list_hash", draw.list_hash], ["seed", draw.seed], ["beacon", draw.beacon]];
    if (said === "drawn" && draw.entries === 0) return null;
    return html`<details class="draw" data-draw=${said}>
      <summary><h2>${t(said === "drawn" ? "draw_title" : "draw_title_before")}</h2></summary>
      <p class="facts">${t(`draw_${said}`, { entries: count(draw.entries ?? 0) })}</p>
      ${said === "closed" && draw.wants_beacon && html`<p class="facts">${t(draw.beacon_source ? "draw_fetches_beacon" : "draw_waits_for_beacon", { address: draw.beacon_source?.url ?? "" })}</p>`}
      <dl>${shown.filter(([, value]) => value).map(([name, value]) => html`<dt key=${name}>${t(`draw_${name}`)}</dt><dd key=${value}><code>${value}</code></dd>`)}</dl>
      ${said === "drawn" && html`<button type="button" class="button quiet" data-action="check-draw" disabled=${result === "checking"} onClick=${check}>${t(result === "checking" ? "draw_checking" : "draw_check")}</button>`}
      <div role="status">${result === "unreachable" ? html`<p class="problem">${t("draw_unreachable")}</p>` : result?.flaws && html`<${Verdict} result=${result} draw=${draw} noted=${noted} />`}</div>
    </details>`;
  }

  function Verdict({ result, draw, noted }) {
    if (result.flaws.length > 0) {
      return html`<p class="headline" data-verdict="flawed">${t("draw_flawed")}</p>
        <ul>${result.flaws.map(({ code, entries }) => html`<li key=${code} data-flaw=${code}>${sentences(t(`draw_flaw_${code}`, { entries: entries.join(t("comma")) }), code === "dropped" && result.isSigned && t("draw_receipt_proves"))}</li>`)}</ul>`;
    }
    const beacon = draw.beacon_missed_at ? "beacon_missed" : draw.beacon_source ? "beacon_source" : draw.beacon ? "beacon" : "no_beacon";
    const unproven = ["own", beacon, ...(noted.commitment && noted.list_hash ? [] : ["before"]), "served"];
    return html`<p class="headline" data-verdict="sound">${t("draw_sound", { entries: count(result.entries) })}</p>
      ${result.place && html`<p class="facts">${sentences(t("draw_mine", { place: count(result.place) }), result.isSigned && t("draw_receipt_signed"))}</p>`}
      ${draw.beacon_missed_at && html`<p class="facts" data-beacon="missed">${t("draw_beacon_missed", { seconds: count(draw.beacon_source.within_s) })}</p>`}
      <p class="facts unproven">${t("draw_unproven")}</p>
      <ul class="facts">${unproven.map((name) => html`<li key=${name}>${t(`draw_unproven_${name}`, { address: draw.beacon_source?.url.replace("{round}", draw.beacon_round) ?? "" })}</li>`)}</ul>`;
  }

  return Afterwards;
}
