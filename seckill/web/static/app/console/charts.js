// Small charts on one time axis, which can be moved and looked at closer, from what was kept to what goes on now.

import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { useEffect, useRef, useState } from "../../vendor/preact/hooks.mjs";
import { nowMs } from "../clock.js";
import { count, currentLanguage, t, time, zone } from "../i18n.js";
import { html } from "../ui.js";
import { LIVE_SPANS, historyQuery, useHistory } from "./sale_history.js";
import { download, told } from "./session.js";

const HEIGHT = 120;
const SPAN_S_MIN = 60; // a sale that has just been opened fills the chart soon
const CLOSEST_S = 10;
const WIDEST_S = 90 * 86_400;
const AROUND_S = [60, 240]; // a moment, with what led to it and what came of it
const ALWAYS = [
  ["accepted", "--unpaid", "per_second"],
  ["persisted", "--paid", "per_second"],
  ["refused", "--refused", "per_second"],
  ["backlog", "--queued", "entries"],
  ["available", "--available", "unit_units"],
  ["paid", "--paid", "unit_units"],
  ["p99", "--returning", "unit_ms"],
];
// From one time on the axis to the next.
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000];
const OF_LINE = ["waiting", "--queued", "unit_people"];
const MARKS = { "stock.sold_out": "--dead", "stock.returned": "--returning", "round.began": "--accent", "alarm.raised": "--dead", "sale.paused": "--queued" };

export const around = (atS) => ({ fromS: atS - AROUND_S[0], toS: atS + AROUND_S[1] });

/** From a minute before it begins to a minute after it ends, or now; of a very long one the last of it. */
export function wholeOf(sale) {
  const toS = Math.min(nowMs() / 1000 + 1, Date.parse(sale.ends_at) / 1000 + 60);
  return { fromS: Math.max(Date.parse(sale.begins_at) / 1000 - 60, toS - WIDEST_S), toS };
}

/** `range` and `onRange`: which time is shown; others may point at a moment, too. */
export function Charts({ sale, samples, marks, soldOutAt, withLine, range, onRange }) {
  const { shown, stepS, loaded } = useHistory(sale.id, range, samples);
  // Empty charts say nothing and are left out. Once drawn they stay, so that one can go back after zooming in too far.
  const drawn = useRef(false);
  drawn.current ||= shown.length > 0;
  const span = () => {
    const now = nowMs() / 1000;
    return range.spanS ? [now - range.spanS, now] : [range.fromS, range.toS];
  };
  const to = (fromS, toS) => {
    const now = nowMs() / 1000;
    const wide = Math.min(WIDEST_S, Math.max(CLOSEST_S, toS - fromS));
    const until = Math.min(toS, now + wide / 10); // nothing is known of what is to come
    onRange({ fromS: Math.floor(until - wide), toS: Math.ceil(until) });
  };
  const move = (share) => {
    const [from, until] = span();
    to(from + share * (until - from), until + share * (until - from));
  };
  const zoom = (factor) => {
    const [from, until] = span();
    const middle = (from + until) / 2;
    to(middle - (factor * (until - from)) / 2, middle + (factor * (until - from)) / 2);
  };
  const begins = Date.parse(sale.begins_at) / 1000;
  const whole = () => onRange(wholeOf(sale));
  const keys = (event) => {
    const act = { ArrowLeft: () => move(-0.5), ArrowRight: () => move(0.5), "+": () => zoom(0.5), "-": () => zoom(2) }[event.key];
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };
  const pressed = (spanS) => (range.spanS === spanS ? "true" : "false");
  const fixed = range.spanS === undefined;
  return html`<section class="charts-section" aria-labelledby="charts-title">
    <div class="charts-head">
      <h2 id="charts-title">${t("charts")}</h2>
      <p class="facts" role="status">${fixed ? t("range_shown", { ...moments(range), step: stepOf(stepS) }) : t("range_now", { span: stepOf(range.spanS) })}</p>
    </div>
    <div class="ranges" role="toolbar" aria-label=${t("charts_range")} onKeyDown=${keys}>
      ${Object.entries(LIVE_SPANS).map(
        ([name, spanS]) => html`<button key=${name} type="button" class="pill" aria-pressed=${pressed(spanS)} onClick=${() => onRange({ spanS })}>${name === "5m" ? `${t("range_live")} · ` : ""}${t(`range_${name}`)}</button>`,
      )}
      <button type="button" class="pill" onClick=${() => onRange(around(begins))}>${t("range_start")}</button>
      ${soldOutAt && html`<button type="button" class="pill" onClick=${() => onRange(around(Date.parse(soldOutAt) / 1000))}>${t("range_sold_out")}</button>`}
      <button type="button" class="pill" onClick=${whole}>${t("range_whole")}</button>
      <span class="moves">
        <button type="button" class="pill" aria-label=${t("range_back")} title=${t("range_back")} onClick=${() => move(-0.5)}>←</button>
        <button type="button" class="pill" aria-label=${t("range_on")} title=${t("range_on")} onClick=${() => move(0.5)}>→</button>
        <button type="button" class="pill" aria-label=${t("range_in")} title=${t("range_in")} onClick=${() => zoom(0.5)}>+</button>
        <button type="button" class="pill" aria-label=${t("range_out")} title=${t("range_out")} onClick=${() => zoom(2)}>−</button>
      </span>
    </div>
    ${loaded && shown.length === 0 && html`<p class="facts" role="status" data-nothing>${t("charts_nothing")}</p>`}
    ${drawn.current && html`<div class="charts">
      ${(withLine ? [...ALWAYS, OF_LINE] : ALWAYS).map(
        ([name, colour, unit]) => html`<${Chart} key=${name} name=${name} colour=${colour} unit=${unit} samples=${shown} range=${range} marks=${marks} onRange=${to} onBack=${() => onRange({ spanS: LIVE_SPANS["5m"] })} />`,
      )}
    </div>`}
    ${drawn.current && html`<div class="charts-foot"><p class="facts">${t("charts_hint")}</p><${Export} sale=${sale} span=${span} /></div>`}
  </section>`;
}

function Export({ sale, span }) {
  const [problem, setProblem] = useState("");
  const save = async () => {
    const [from, to] = span();
    try {
      await download(`/v1/admin/sales/${sale.id}/history.csv?${historyQuery(from, to)}`, `history-${sale.id}.csv`);
      setProblem("");
    } catch (error) {
      setProblem(told(error));
    }
  };
  return html`<button type="button" class="link" onClick=${save}>${t("history_csv")}</button><span class="problem" role="alert">${problem}</span>`;
}

const SIZES = [["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];

function stepOf(seconds) {
  const [name, size] = SIZES.find(([, each]) => seconds >= each && seconds % each === 0) ?? ["s", 1];
  return t(`step_${name}`, { many: count(Math.round(seconds / size)) });
}

function moments({ fromS, toS }) {
  const now = nowMs();
  return { from: time(fromS * 1000, now), to: time(toS * 1000, now), zone: zone(fromS * 1000) };
}

function Chart({ name, colour, unit, samples, range, marks, onRange, onBack }) {
  const place = useRef();
  const plot = useRef(null);
  const [hovered, setHovered] = useState(null);
  // What the drawing reads when it is drawn: uPlot is made once, and told of news.
  const now = useRef({});
  now.current = { range, marks, onRange, onBack };
  const language = currentLanguage();
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const element = place.current;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(element.clientWidth, colour, now, setHovered), data(samples, name), element);
    };
    draw();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    dark.addEventListener("change", draw);
    return () => {
      resized.disconnect();
      dark.removeEventListener("change", draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [language]);
  useEffect(() => {
    if (plot.current?.select.width > 0) return; // a time is being chosen: nothing may move under the hand
    plot.current?.setData(data(samples, name));
  }, [samples, range, marks]);
  const at = hovered === null ? samples.findLast((sample) => sample[name] != null) : samples[hovered];
  return html`<figure class="chart" data-chart=${name}>
    <figcaption>
      <span>${t(`chart_${name}`)}${hovered !== null && at ? html` <span class="facts">${time(at.atS * 1000, nowMs())}</span>` : ""}</span>
      <span class="value">${at?.[name] == null ? "–" : rounded(at[name])} <span class="facts">${t(unit)}</span></span>
    </figcaption>
    <div class="plot" ref=${place} aria-hidden="true"></div>
  </figure>`;
}

const rounded = (value) => (value >= 10 || Number.isInteger(value) ? count(Math.round(value)) : value.toFixed(1));

const data = (samples, name) => [samples.map((sample) => sample.atS), samples.map((sample) => sample[name] ?? null)];

function options(width, colour, now, onHover) {
  const style = getComputedStyle(document.documentElement);
  const colourOf = (name) => style.getPropertyValue(name).trim();
  const [line, grid, text] = [colour, "--line", "--muted"].map(colourOf);
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  const chosen = (plot) => {
    const { left, width: wide } = plot.select;
    if (wide < 5) return;
    const [from, to] = [plot.posToVal(left, "x"), plot.posToVal(left + wide, "x")];
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    now.current.onRange(from, to);
  };
  return {
    width,
    height: HEIGHT,
    padding: [8, 28, 0, 0], // half a time on the right, however near to the end it stands
    legend: { show: false },
    cursor: { sync: { key: "console" }, y: false, points: { size: 6 }, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => now.current.onBack() } },
    scales: {
      x: { range: ({ data: [times] }) => spanOf(now.current.range, times) },
      y: { range: (_, low, high) => [0, Math.max(1, (high ?? 0) * 1.1)] },
    },
    axes: [
      { ...axis, size: 24, space: 64, incrs: STEPS_S, values: (plot, seconds) => seconds.map((second) => clock(second, plot.scales.x)) },
      { ...axis, size: 44, space: 32, values: (_, values) => values.map(short) },
    ],
    series: [{}, { stroke: line, width: 2, fill: `${line}22`, points: { show: false }, spanGaps: true }],
    hooks: {
      setSelect: [chosen],
      setCursor: [(plot) => onHover(plot.cursor.idx ?? null)],
      draw: [(plot) => drawMarks(plot, now.current.marks, colourOf)],
    },
  };
}

/** What happened then, as lines through all charts. */
function drawMarks(plot, marks, colourOf) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.lineWidth = devicePixelRatio;
  for (const { atS, kind } of marks) {
    if (!(kind in MARKS) || atS < plot.scales.x.min || atS > plot.scales.x.max) continue;
    const x = Math.round(plot.valToPos(atS, "x", true)) + 0.5;
    ctx.strokeStyle = colourOf(MARKS[kind]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** By the samples themselves where they are young: of a single one uPlot would make a whole day. */
function spanOf({ spanS, fromS, toS }, times) {
  if (spanS === undefined) return [fromS, toS];
  const high = Math.max(times.at(-1) ?? 0, nowMs() / 1000 - 2);
  const low = Math.max(high - spanS, times[0] ?? high);
  return [Math.min(low, high - SPAN_S_MIN), high];
}

const SHORT = [[1e9, "G"], [1e6, "M"], [1e4, "k"]];

/** 12k: what is wider than the axis cannot be read. */
function short(value) {
  const [size, sign] = SHORT.find(([each]) => value >= each) ?? [1, ""];
  const unit = sign === "k" ? 1_000 : size;
  return `${Number((value / unit).toFixed(1))}${sign}`;
}

const two = (number) => String(number).padStart(2, "0");

/** Seconds only where they matter, the day where it is not one day. */
function clock(seconds, { min, max }) {
  const at = new Date(seconds * 1000);
  const hands = [at.getHours(), at.getMinutes()].map(two);
  if (max - min > 2 * 86_400) return `${at.getMonth() + 1}/${at.getDate()} ${hands.join(":")}`;
  return (max - min > 2 * 3_600 ? hands : [...hands, two(at.getSeconds())]).join(":");
}
