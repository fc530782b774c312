// Orders that could not be written, for people to decide about.

import { useState } from "../../vendor/preact/hooks.mjs";
import { counted, dateTime, readable, t } from "../i18n.js";
import { Confirm, Empty, html } from "../ui.js";
import { usePolled } from "./data.js";
import { said } from "./sentences.js";
import { ask, may, told } from "./session.js";
import { asksWhy } from "./why.js";

export function DeadView() {
  const [content, trouble, reload] = usePolled("/v1/admin/dead", 5_000);
  const [question, setQuestion] = useState(null);
  const [result, setResult] = useState({ text: "", wrong: false });
  const confirm = (letter, verb) => () =>
    setQuestion(asksWhy({
      title: t(`${verb}_title`, { id: letter.id }),
      effect: t(`${verb}_effect`),
      yes: t(`${verb}_yes`),
      act: async ({ reason }) => {
        try {
          await ask("POST", `/v1/admin/dead/${letter.id}/${verb}`, undefined, { reason });
          setResult({ text: t(`${verb}_done`, { id: letter.id }), wrong: false });
        } catch (error) {
          setResult({ text: told(error), wrong: true });
        }
        reload();
      },
    }));
  return html`<div class="view">
    <h1>${t("dead_letters")}</h1>
    <p class="facts">${t("dead_why")}</p>
    <p class=${result.wrong ? "problem" : "facts"} role="status" aria-live="polite">${result.text}</p>
    ${content === null && (trouble ? html`<p class="notice">${t("offline")}</p>` : html`<p class="facts">${t("loading")}</p>`)}
    ${content?.dead.length === 0 && html`<${Empty} text=${t("no_dead")} />`}
    ${content?.dead.map(
      (letter) => html`<article class="found" key=${letter.id}>
        <header><h2>${t("letter", { id: letter.id })}</h2><span class="facts">${dateTime(Date.parse(letter.created_at))}</span></header>
        <p class="text">${said(letter.reason)}</p>
        <p class="facts">
          ${letter.order_id ? html`<a href=${`#/orders/${letter.order_id}`}>${readable(letter.order_id)}</a>` : t("unreadable")} ·
          ${" "}${counted("attempts", letter.attempts)}
        </p>
        <ol class="history">
          ${letter.history.map(({ at, reason }, index) => html`<li key=${index}><time datetime=${at}>${dateTime(Date.parse(at))}</time><span class="text">${said(reason)}</span></li>`)}
        </ol>
        <details><summary>${t("payload")}</summary><pre>${letter.payload}</pre></details>
        ${may("operator") && html`<div class="actions">
          <button type="button" class="button quiet small" onClick=${confirm(letter, "replay")}>${t("replay")}</button>
          <button type="button" class="button danger small" onClick=${confirm(letter, "discard")}>${t("discard")}</button>
        </div>`}
      </article>`,
    )}
    <${Confirm} question=${question} onClose=${() => setQuestion(null)} />
  </div>`;
}
