// Who has changed what: of everything, and of one sale.

import { useEffect, useRef, useState } from "../../vendor/preact/hooks.mjs";
import { dateTime, has, readable, t } from "../i18n.js";
import { Empty, html } from "../ui.js";
import { usePolled } from "./data.js";
import { said } from "./sentences.js";
import { ask, told } from "./session.js";

const PATH = "/v1/admin/record";
const PAGE = 50;
const AT_ONCE = 5; // more facts than these are shown on demand

const queryOf = (saleId, who, limit) => {
  const query = new URLSearchParams({ limit });
  if (saleId) query.set("sale_id", saleId);
  if (who) query.set("who", who);
  return query;
};

export function RecordView({ saleId, titles }) {
  const [who, setWho] = useState("");
  const query = queryOf(saleId, who, PAGE);
  const [content, trouble] = usePolled(`${PATH}?${query}`, 5_000);
  const [older, setOlder] = useState({ entries: [], next: undefined });
  const [problem, setProblem] = useState("");
  useEffect(() => setOlder({ entries: [], next: undefined }), [saleId, who]);
  const next = older.next === undefined ? content?.next : older.next;
  const wanted = useRef(query);
  wanted.current = query;
  const more = async () => {
    try {
      const page = await ask("GET", `${PATH}?${query}&after=${next}`);
      if (wanted.current !== query) return; // entries of somebody else are wanted by now
      setOlder({ entries: [...older.entries, ...page.entries], next: page.next });
      setProblem("");
    } catch (error) {
      if (wanted.current === query) setProblem(told(error));
    }
  };
  // What is new pushes what was last on the first page onto the second.
  const shown = new Map([...(content?.entries ?? []), ...older.entries].map((entry) => [entry.id, entry]));
  return html`<div class="view">
    <h1>${t("record")}${saleId ? `: ${titles[saleId] ?? saleId}` : ""}</h1>
    <p class="facts">${t("record_why")}${saleId && html` <a href="#/record">${t("record_whole")}</a>`}</p>
    ${who && html`<div class="actions"><button type="button" class="button quiet small" onClick=${() => setWho("")}>${who} ×</button></div>`}
    <p class="problem" role="alert">${problem}</p>
    ${content === null && html`<p class="facts" role="status">${trouble ? told(trouble) : t("loading")}</p>`}
    ${content !== null && shown.size === 0 && html`<${Empty} text=${t("record_none")} />`}
    ${shown.size > 0 && html`<section><${Entries} entries=${[...shown.values()]} titles=${titles} onWho=${setWho} /></section>`}
    ${next && html`<button type="button" class="button quiet" onClick=${more}>${t("record_more")}</button>`}
  </div>`;
}

/** A draft was not announced. */
const isDraft = (what, entry) => what === "sale.created" && entry?.after?.published === false;

export const labelOf = (what, entry) => {
  if (isDraft(what, entry)) return t("what_sale_drafted");
  const name = `what_${what.replace(".", "_")}`;
  return has(name) ? t(name) : what;
};

function Entries({ entries, titles, onWho }) {
  return html`<ol class="record">${entries.map(
    (entry) => html`<li key=${entry.id} data-what=${entry.what}>
      <p class="facts"><time datetime=${entry.at} title=${entry.request_id}>${dateTime(Date.parse(entry.at))}</time></p>
      <div>
        <p>${onWho ? html`<button type="button" class="link" onClick=${() => onWho(entry.who)}>${entry.who}</button>` : html`<strong>${entry.who}</strong>`}
          ${" "}${labelOf(entry.what, entry)}${" "}<${Subject} entry=${entry} titles=${titles} /></p>
        ${entry.why && html`<p class="text">${t("record_reason", { why: entry.why })}</p>`}
        <${Change} before=${entry.before ?? {}} after=${entry.after ?? {}} />
      </div>
    </li>`,
  )}</ol>`;
}

function Subject({ entry, titles }) {
  const kind = entry.what.split(".")[0];
  if (kind === "order") return html`<a href=${`#/orders/${entry.subject}`}>${readable(entry.subject)}</a>`;
  if (entry.sale_id !== null) return html`<a class="facts" href=${`#/sales/${entry.sale_id}`}>${titles[entry.sale_id] ?? entry.sale_id}</a>`;
  return html`<span class="facts">${entry.subject}</span>`;
}

const isNothing = (value) => value === null || value === "" || value === false || (Array.isArray(value) && value.length === 0);
/** Of words of ours, in the reader's language; what people have written stays as it is. */
const shownAs = (value, name) => (typeof value !== "string" ? JSON.stringify(value) : name === "status" ? said(value) : value);

export function Change({ before, after }) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  // Of something new, only what was said about it.
  const told = names.filter((name) => name in before || !isNothing(after[name]));
  if (told.length === 0) return null;
  const list = html`<ul class="changes">${told.map((name) => {
    const parts = [name in before ? shownAs(before[name], name) : null, name in after ? shownAs(after[name], name) : null];
    return html`<li key=${name} class="text"><code>${name}</code> ${parts.filter((part) => part !== null).join(" → ")}</li>`;
  })}</ul>`;
  return told.length <= AT_ONCE ? list : html`<details><summary>${t("record_change")}</summary>${list}</details>`;
}
