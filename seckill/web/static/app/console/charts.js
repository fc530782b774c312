// Four small charts on one time axis.

import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { useEffect, useRef } from "../../vendor/preact/hooks.mjs";
import { nowMs } from "../clock.js";
import { currentLanguage, t } from "../i18n.js";
import { html } from "../ui.js";

const HEIGHT = 120;
const SPAN_S_MIN = 60; // a sale that has just been opened fills the chart soon
const CHARTS = [
  ["accepted", "--unpaid", "per_second"],
  ["persisted", "--paid", "per_second"],
  ["refused", "--refused", "per_second"],
  ["backlog", "--queued", "entries"],
];

export function Charts({ samples }) {
  return html`<div class="charts">
    ${CHARTS.map(([name, colour, unit]) => html`<${Chart} key=${name} name=${name} colour=${colour} unit=${unit} samples=${samples} />`)}
  </div>`;
}

function Chart({ name, colour, unit, samples }) {
  const place = useRef();
  const plot = useRef(null);
  const language = currentLanguage();
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const element = place.current;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(element.clientWidth, colour), data(samples, name), element);
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
  const last = samples.at(-1);
  useEffect(() => plot.current?.setData(data(samples, name)), [last]);
  return html`<figure class="chart">
    <figcaption>
      <span>${t(`chart_${name}`)}</span>
      <span class="value">${last === undefined ? "–" : rounded(last[name])} <span class="facts">${t(unit)}</span></span>
    </figcaption>
    <div class="plot" ref=${place} aria-hidden="true"></div>
  </figure>`;
}

const rounded = (value) => (value >= 10 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1));

const data = (samples, name) => [samples.map((sample) => sample.atS), samples.map((sample) => sample[name])];

function options(width, colour) {
  const style = getComputedStyle(document.documentElement);
  const [line, grid, text] = [colour, "--line", "--muted"].map((name) => style.getPropertyValue(name).trim());
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  return {
    width,
    height: HEIGHT,
    padding: [8, 28, 0, 0], // half a time on the right, however near to the end it stands
    legend: { show: false },
    cursor: { sync: { key: "console" }, y: false, points: { size: 6 }, drag: { setScale: false } },
    scales: {
      // By the samples themselves: of a single one uPlot would make a whole day.
      x: { range: ({ data: [times] }) => (times.length > 0 ? span(times[0], times.at(-1)) : span(null, nowMs() / 1000)) },
      y: { range: (_, low, high) => [0, Math.max(1, (high ?? 0) * 1.1)] },
    },
    axes: [
      { ...axis, size: 24, space: 80, values: (_, seconds) => seconds.map(clock) },
      { ...axis, size: 40, space: 32 },
    ],
    series: [{}, { stroke: line, width: 2, fill: `${line}22`, points: { show: false } }],
  };
}

const span = (low, high) => [Math.min(low ?? high, high - SPAN_S_MIN), high];

function clock(seconds) {
  const at = new Date(seconds * 1000);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}
