// What both pages are made of. Texts from people are always children, never markup.

import htm from "../vendor/htm/htm.mjs";
import { useEffect, useId, useRef, useState } from "../vendor/preact/hooks.mjs";
import { h } from "../vendor/preact/preact.mjs";
import { nowMs } from "./clock.js";
import { canSignIn, meta } from "./api.js";
import { chooseLanguage, onLanguage, otherLanguage, t } from "./i18n.js";

export const html = htm.bind(h);

/** Draws again when the language changes. */
export function useLanguage() {
  const [, again] = useState(0);
  useEffect(() => onLanguage(() => again((count) => count + 1)), []);
}

/** The server's time, drawn again so often. */
export function useNow(everyMs = 250) {
  const [now, setNow] = useState(nowMs());
  useEffect(() => {
    const timer = setInterval(() => setNow(nowMs()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** Calls `step` now and again after it has finished, but not while nobody looks. `step` returns the wait in ms. */
export function useRepeated(step, inputs) {
  useEffect(() => {
    let over = false;
    let timer;
    const run = async () => {
      clearTimeout(timer);
      if (document.hidden) return;
      const waitMs = await step(() => over);
      if (!over && Number.isFinite(waitMs)) timer = setTimeout(run, waitMs);
    };
    const look = () => {
      if (!document.hidden) run();
    };
    document.addEventListener("visibilitychange", look);
    run();
    return () => {
      over = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, inputs);
}

let focused = null;
let around = null; // the page, or in somebody else's page the part of it that is ours
document.addEventListener("focusin", (event) => {
  [focused] = event.composedPath();
  around = focused.getRootNode();
});

/** When the button that was pressed goes away, whoever uses the keyboard stays where they are: at what has come of it. */
export function useFocusKept(selector) {
  useEffect(() => {
    if (focused === null || document.activeElement !== document.body || (focused.isConnected && !focused.disabled)) return;
    focused = null;
    around.querySelector(selector)?.focus({ preventScroll: true });
  });
}

export function LanguageSwitch() {
  const other = otherLanguage();
  return html`<button
    type="button"
    class="link"
    lang=${other === "zh" ? "zh-CN" : "en"}
    onClick=${() => chooseLanguage(other)}
  >
    ${other === "zh" ? "中文" : "English"}
  </button>`;
}

/** On every page of a test, so that nobody takes it for a shop. */
export function TestBanner() {
  const kind = meta("test");
  return kind !== "" && html`<p class="test-banner" role="note">${t(`test_${kind}`)}</p>`;
}

/** A question over the page. `open` shows it; Escape and the second button close it, unless it has to be answered. */
export function Dialog({ open, title, onClose, mustAnswer = false, children }) {
  const element = useRef();
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    if (open && !dialog.open) dialog.showModal();
    if (!open && dialog.open) dialog.close();
  }, [open]);
  return html`<dialog ref=${element} aria-labelledby=${id} onClose=${onClose} onCancel=${(event) => mustAnswer && event.preventDefault()}>
    ${open && html`<h2 id=${id}>${title}</h2>${children}`}
  </dialog>`;
}

/** Names the effect and asks before it acts. */
export function Confirm({ question, onClose }) {
  const [busy, setBusy] = useState(false);
  const act = async () => {
    setBusy(true);
    try {
      await question.act();
    } finally {
      setBusy(false);
      onClose();
    }
  };
  return html`<${Dialog} open=${question !== null} title=${question?.title} onClose=${onClose}>
    <p>${question?.effect}</p>
    <div class="buttons">
      <button type="button" class="button danger" disabled=${busy} onClick=${act}>${question?.yes}</button>
      <button type="button" class="button quiet" onClick=${onClose}>${question?.no ?? t("back")}</button>
    </div>
  <//>`;
}

/** Nothing to show: why, and where to go instead. */
export const Empty = ({ text, children }) => html`<div class="empty"><p role="status">${text}</p>${children}</div>`;

export const SignInFirst = ({ text, onSignIn }) =>
  canSignIn()
    ? html`<${Empty} text=${text}><button type="button" class="button primary" onClick=${onSignIn}>${t("sign_in")}</button><//>`
    : html`<${Empty} text=${t("come_from_shop")} />`;

/** `Commands` in a text are set apart. */
export const coded = (text) => text.split("`").map((part, index) => (index % 2 ? html`<code key=${index}>${part}</code>` : part));

export const Chip = ({ state, label }) =>
  html`<span class="chip" data-state=${state}><span class="dot" aria-hidden="true"></span>${label}</span>`;

export const Skeleton = ({ lines = 3 }) =>
  html`<div class="skeleton" role="status">
    <span class="visually-hidden">${t("loading")}</span>
    ${Array.from({ length: lines }, (_, line) => html`<div key=${line} class="bone" aria-hidden="true"></div>`)}
  </div>`;

/** A picture for what has none: always the same for the same sale, in colours of the theme. */
export function Cover({ seed }) {
  const random = generator(seed);
  const palette = Math.floor(random() * 6);
  const tiles = [];
  for (let y = 0; y < 4; y += 1) {
    for (let x = 0; x < 4; x += 1) {
      const colour = 1 + Math.floor(random() * 3);
      tiles.push(html`<path key=${`${x}${y}`} class=${`c${colour}`} d=${shape(Math.floor(random() * 7), x * 40, y * 40)} />`);
    }
  }
  return html`<svg class=${`cover p${palette}`} viewBox="0 0 160 160" preserveAspectRatio="xMidYMin slice" aria-hidden="true">
    <rect class="c0" width="160" height="160" />
    ${tiles}
  </svg>`;
}

function shape(kind, x, y) {
  const [right, bottom] = [x + 40, y + 40];
  switch (kind) {
    case 0:
      return `M${x} ${y}A40 40 0 0 1 ${right} ${bottom}H${x}Z`;
    case 1:
      return `M${right} ${y}A40 40 0 0 0 ${x} ${bottom}H${right}Z`;
    case 2:
      return `M${x} ${bottom}A40 40 0 0 0 ${right} ${y}H${x}Z`;
    case 3:
      return `M${right} ${bottom}A40 40 0 0 1 ${x} ${y}H${right}Z`;
    case 4:
      return `M${x} ${y + 20}a20 20 0 1 1 40 0a20 20 0 1 1 -40 0Z`;
    case 5:
      return `M${x} ${y}h40v20h-40Z`;
    default:
      return "";
  }
}

/** The same numbers for the same text. */
function generator(text) {
  let state = 2166136261;
  for (const char of text) state = Math.imul(state ^ char.codePointAt(0), 16777619);
  return () => {
    state = Math.imul(state ^ (state >>> 15), 2246822519);
    state = Math.imul(state ^ (state >>> 13), 3266489917);
    return ((state ^= state >>> 16) >>> 0) / 2 ** 32;
  };
}
