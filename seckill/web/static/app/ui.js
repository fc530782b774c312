// What both pages are made of. Texts from people are always children, never markup.

import htm from "../vendor/htm/htm.mjs";
import { useEffect, useId, useRef, useState } from "../vendor/preact/hooks.mjs";
import { h } from "../vendor/preact/preact.mjs";
import { nowMs } from "./clock.js";
import { canSignIn, meta } from "./api.js";
import { chooseLanguage, currentLanguage, offered, onLanguage, t } from "./i18n.js";
import { LANGUAGES } from "./languages.js";

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

/** Each in its own language, for those who cannot read the one that is shown. Of two, the other is one click away. */
export function LanguageSwitch() {
  const other = offered.find((code) => code !== currentLanguage());
  if (offered.length === 2) {
    return html`<button type="button" class="link" lang=${LANGUAGES[other].tag} onClick=${() => chooseLanguage(other)}>${LANGUAGES[other].name}</button>`;
  }
  return html`<select class="language" aria-label=${t("language")} value=${currentLanguage()} onChange=${(event) => chooseLanguage(event.target.value)}>
    ${offered.map((code) => html`<option key=${code} value=${code} lang=${LANGUAGES[code].tag}>${LANGUAGES[code].name}</option>`)}
  </select>`;
}

/** On every page of a test, so that nobody takes it for a shop. */
export function TestBanner() {
  const kind = meta("test");
  return kind !== "" && html`<p class="test-banner" role="note">${t(`test_${kind}`)}</p>`;
}

/** A question over the page. `open` shows it; Escape and the second button close it, unless it has to be answered.
 * `light`: nothing is lost by closing it, so there is a button for that, and a tap beside it does. */
export function Dialog({ open, title, onClose, mustAnswer = false, light = false, children }) {
  const element = useRef();
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    if (open && !dialog.open) dialog.showModal();
    if (!open && dialog.open) dialog.close();
  }, [open]);
  return html`<dialog ref=${element} aria-labelledby=${id} onClose=${onClose} onCancel=${(event) => mustAnswer && event.preventDefault()} onPointerDown=${(event) => light && isBeside(event, element.current) && element.current.close()}>
    ${open && light && html`<button type="button" class="close" aria-label=${t("close_dialog")} onClick=${() => element.current.close()}>×</button>`}
    ${open && html`<h2 id=${id}>${title}</h2>${children}`}
  </dialog>`;
}

function isBeside({ target, clientX: x, clientY: y }, dialog) {
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  return target === dialog && (x < left || x > right || y < top || y > bottom);
}

// A finger that taps twice on "Cancel order" must not have answered the question, which opens right under it.
const UNARMED_MS = 500;

/** Names the effect and asks before it acts. */
export function Confirm({ question, onClose }) {
  const [busy, setBusy] = useState(false);
  const [armed, setArmed] = useState(false);
  useEffect(() => {
    setArmed(false);
    if (question === null) return undefined;
    const timer = setTimeout(() => setArmed(true), UNARMED_MS);
    return () => clearTimeout(timer);
  }, [question]);
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
      <button type="button" class=${`button danger${armed ? "" : " unarmed"}`} disabled=${busy || !armed} onClick=${act}>${question?.yes}</button>
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
