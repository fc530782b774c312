// The operator's console. The address says what is shown (#/ for all sales, #/new, #/sales/ID, #/orders/ID, #/orders//SALE, #/refunds, #/webhooks,
// #/dead, #/record/SALE, #/buyers, #/keys, #/alarms, #/audit, #/system) and nothing secret.

import { render } from "../../vendor/preact/preact.mjs";
import { useEffect, useRef, useState } from "../../vendor/preact/hooks.mjs";
import { base, meta } from "../api.js";
import { keepClock } from "../clock.js";
import { addTexts, count, currentLanguage, ready, t } from "../i18n.js";
import { STRINGS as SHARED } from "../strings.js";
import { Dialog, Empty, LanguageSwitch, Skeleton, TestBanner, coded, html, useLanguage, useRepeated } from "../ui.js";
import { AlarmsView } from "./alarms.js";
import { AuditView, Verdict, useAudit } from "./audit.js";
import { useLive } from "./data.js";
import { BuyersView } from "./buyers.js";
import { DeadView } from "./dead.js";
import { SaleForm } from "./form.js";
import { KeysView } from "./keys.js";
import { OrdersView } from "./orders.js";
import { Overview } from "./overview.js";
import { RecordView } from "./record.js";
import { RefundsView } from "./refunds.js";
import { SaleView } from "./sale.js";
import { currentKey, currentOperator, enter, goToProvider, hasSession, isKeyDenied, leave, may, onSession, provider, recall, resume, told } from "./session.js";
import { stateOf } from "./states.js";
import { STRINGS } from "./strings.js";
import { SystemView } from "./system.js";
import { WebhooksView } from "./webhooks.js";

addTexts({ ...SHARED, ...STRINGS });
keepClock();

function App() {
  useLanguage();
  const [, again] = useState(0);
  useEffect(() => onSession(() => again((times) => times + 1)), []);
  useEffect(() => {
    document.title = `${meta("shop")} · ${t("console")}`;
  });
  useEffect(() => {
    if (currentKey() === null && provider() !== "") resume().catch(() => {});
  }, []);
  if (currentKey() === null) {
    return html`<main class="sign-in">
      <h1>${meta("shop")} · ${t("console")}</h1>
      <${TestBanner} />
      <${ProviderButton} />
      <${KeyForm} />
      <${LanguageSwitch} />
    </main>`;
  }
  // What is under way, a form that is half filled in for example, waits behind the question.
  return html`<${Desk} />
    <${Dialog} open=${isKeyDenied()} title=${t(hasSession() ? "session_over" : "admin_key_again")} mustAnswer=${true} onClose=${() => {}}>
      <${ProviderButton} />
      <${KeyForm} why=${hasSession() ? "" : t("admin_key_wrong")} />
      <button type="button" class="link" onClick=${leave}>${t("sign_out")}</button>
    <//>`;
}

/** Where operators can sign in with a provider, this button comes before the field for a key. */
function ProviderButton() {
  if (provider() === "") return null;
  return html`<p class="with-provider">
    <button type="button" class="button primary" onClick=${goToProvider}>${t("sign_in_with", { provider: provider() })}</button>
    <span class="facts">${t("or_with_a_key")}</span>
  </p>`;
}

function KeyForm({ why = "" }) {
  const [key, setKey] = useState("");
  const [problem, setProblem] = useState(why);
  const submit = async (event) => {
    event.preventDefault();
    try {
      await enter(key.trim());
    } catch (error) {
      setProblem(told(error));
    }
  };
  return html`<form class="key-form" onSubmit=${submit}>
    <label class="field"><span>${t("admin_key")}</span>
      <input name="key" type="password" autocomplete="current-password" required aria-describedby="wrong-key" value=${key} onInput=${(event) => setKey(event.target.value)} autofocus /></label>
    <p class="problem" id="wrong-key" role="alert">${problem}</p>
    <p class="facts">${coded(t("admin_key_why"))}</p>
    <button type="submit" class=${provider() === "" ? "button primary" : "button quiet"}>${t("sign_in")}</button>
  </form>`;
}

// An address that was typed by hand may be badly escaped. Then it is taken as it was typed.
const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

function useAddress() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    changed(); // since it was drawn, and before anybody listened
    return () => removeEventListener("hashchange", changed);
  }, []);
  const [area = "", id = null, of = ""] = hash.replace(/^#\/?/, "").split("/");
  return { area, id: id === null ? null : decoded(id), of };
}

const NARROW = "(max-width: 800px)"; // as in the style sheet

function useMedia(query) {
  const [list] = useState(() => matchMedia(query));
  const [matches, setMatches] = useState(list.matches);
  useEffect(() => {
    const changed = () => setMatches(list.matches);
    list.addEventListener("change", changed);
    changed();
    return () => list.removeEventListener("change", changed);
  }, []);
  return matches;
}

const HOME = { area: "", id: null, of: "" };
// What sells, and what it runs on.
const AREAS = [["orders", "refunds", "buyers", "record"], ["alarms", "audit", "dead", "system", "webhooks", "keys"]];
const ORDER = ["open", "sold_out", "paused", "scheduled", "draft", "ended"];

/** What comes next first, and of what has begun or is over the latest. */
const byTime = (one, other) => (one.state === "scheduled" ? 1 : -1) * (Date.parse(one.begins_at) - Date.parse(other.begins_at));

/** Asks who is signed in, again and again until there is an answer. */
function useOperator() {
  useRepeated(async () => {
    if (currentOperator() !== null || isKeyDenied()) return 1_000;
    await recall().catch(() => {});
    return 1_000;
  }, []);
  return currentOperator();
}

function Desk() {
  const asked = useAddress();
  const [made, setMade] = useState(null);
  // A new sale is filled in over what was there, at an address of its own: Back closes it and leaves the console open.
  const behind = useRef(null);
  if (asked.area !== "new") behind.current = asked;
  const address = behind.current ?? HOME;
  const creating = asked.area === "new" && may("operator");
  const create = () => (location.hash = "#/new");
  const closeForm = () => creating && (behind.current === null ? location.replace("#/") : history.back());
  const audit = useAudit();
  const me = useOperator();
  const [chosen, setChosen] = useState(null);
  const wanted = address.area === "sales" ? address.id : chosen;
  const { sales, live, away, samples, rates, reload, showOlder } = useLive(wanted);
  const sorted = [...(sales ?? [])].sort((one, other) => ORDER.indexOf(stateOf(one)) - ORDER.indexOf(stateOf(other)) || byTime(one, other));
  const sale = sorted.find((one) => one.id === wanted);
  useEffect(() => {
    if (sale !== undefined) setChosen(sale.id);
  }, [sale?.id]);
  // On a phone all of it would fill the screen: it is one line there, until somebody wants more.
  const narrow = useMedia(NARROW);
  const [listed, setListed] = useState(false);
  useEffect(() => setListed(false), [asked.area, asked.id, asked.of]);
  // Another page begins at its top, as pages do; what is opened within one stays where the reader is.
  useEffect(() => scrollTo(0, 0), [address.area, address.area === "sales" ? address.id : ""]);
  const closeByKey = (event) => event.key === "Escape" && setListed(false);
  const current = useRef(null);
  // Also where it has gone to another place: one that is sold out stands below those that are on.
  useEffect(() => current.current?.scrollIntoView({ block: "nearest" }), [sale?.id, sorted.indexOf(sale)]);
  const created = (made) => {
    setMade(made.id);
    location.replace(`#/sales/${made.id}`);
    reload();
  };
  const titles = Object.fromEntries((sales ?? []).map((one) => [one.id, one.title]));
  const left = Object.fromEntries((live?.sales ?? []).map((one) => [one.sale_id, one.available]));
  return html`<div class="desk">
    <aside onKeyDown=${closeByKey}>
      <${TestBanner} />
      ${narrow ? html`<button type="button" class="menu" aria-expanded=${listed ? "true" : "false"} onClick=${() => setListed(!listed)}><span class="bars" aria-hidden="true"></span><span class="visually-hidden">${t("menu")}: </span><span class="sale-title">${meta("shop")}</span></button>` : html`<p class="shop">${meta("shop")} · ${t("console")}</p>`}
      ${may("operator") && html`<button type="button" class="button primary small" onClick=${create}>${t("new_sale")}</button>`}
      ${(!narrow || listed) && html`<a class="all-sales" href="#/" aria-current=${address.area === "" ? "page" : "false"} onClick=${() => setListed(false)}>${t("area_overview")}</a>
      <nav aria-label=${t("sales")}>
        <ul class="sale-list" onClick=${() => setListed(false)}>
          ${sorted.map(
            (one) => html`<li key=${one.id}>
              <a href=${`#/sales/${one.id}`} ref=${one.id === sale?.id ? current : undefined} aria-current=${one.id === sale?.id && address.area === "sales" ? "page" : "false"}>
                <span class="dot" data-state=${stateOf(one)} aria-hidden="true"></span>
                <span class="sale-title" dir="auto">${one.title}</span>
                <span class="facts">${t(`sale_${stateOf(one)}`)}${left[one.id] != null ? ` · ${t("left", { units: count(left[one.id]) })}` : ""}</span>
              </a>
            </li>`,
          )}
        </ul>
        ${showOlder && html`<button type="button" class="link" onClick=${showOlder}>${t("older_sales")}</button>`}
      </nav>
      <nav aria-label=${t("navigation")} class="areas" onClick=${(event) => event.target.closest("a") && setListed(false)}>
        ${AREAS.map((group, place) => html`<div key=${place} class="area-group">${group
          .filter((area) => area !== "keys" || may("admin"))
          .map((area) => html`<a key=${area} href=${`#/${area}`} aria-current=${address.area === area ? "page" : "false"}>${t(`area_${area}`)}</a>`)}</div>`)}
        <div class="area-group foot">
        ${meta("help") && html`<a href=${`${base}/help/${currentLanguage() === "zh" ? "zh-CN/" : ""}operations.html`} target="_blank" rel="noopener">${t("help")}</a>`}
        <a href=${`${base}/docs`} target="_blank" rel="noopener">${t("api_docs")}</a>
        <${LanguageSwitch} />
        <button type="button" class="link" onClick=${() => leave()}>${t("sign_out")}</button>
        ${me && html`<p class="facts" data-me>${me.name} · ${t(`role_${me.role}`)}</p>`}
        </div>
      </nav>`}
    </aside>
    <main>
      ${away && html`<p class="notice" role="status">${t("offline")}</p>`}
      <${Area} address=${address} sale=${sale} sales=${sales} live=${live} samples=${samples} titles=${titles} audit=${audit} rates=${rates} sorted=${sorted} showOlder=${showOlder} onChanged=${reload} onCreate=${create} made=${made} />
    </main>
    <${Dialog} open=${creating} title=${t("new_sale")} onClose=${closeForm}>
      <${SaleForm} onDone=${created} onClose=${closeForm} />
    <//>
  </div>`;
}

function Area({ address, sale, sales, live, samples, titles, audit, rates, sorted, showOlder, onChanged, onCreate, made }) {
  if (address.area === "orders") return html`<${OrdersView} wanted=${address.id} saleId=${address.of} sales=${sales ?? []} titles=${titles} />`;
  if (address.area === "alarms") return html`<${AlarmsView} live=${live} titles=${titles} />`;
  if (address.area === "refunds") return html`<${RefundsView} />`;
  if (address.area === "webhooks") return html`<${WebhooksView} titles=${titles} />`;
  if (address.area === "dead") return html`<${DeadView} />`;
  if (address.area === "record") return html`<${RecordView} key=${address.id} saleId=${address.id} titles=${titles} />`;
  if (address.area === "buyers") return html`<${BuyersView} />`;
  if (address.area === "system") return html`<${SystemView} live=${live} titles=${titles} />`;
  if (address.area === "keys") return html`<${KeysView} />`;
  if (address.area === "audit") return html`<${AuditView} ...${audit} sales=${sales} />`;
  if (sales === null) return html`<${Skeleton} lines=${6} />`;
  if (address.area === "") return html`<${Overview} sales=${sorted} live=${live} rates=${rates} showOlder=${showOlder} onCreate=${onCreate} />`;
  if (sale === undefined) {
    return html`<div class="view"><h1>${t("sales")}</h1>
      <${Empty} text=${t("no_such_sale")}><a class="button quiet" href="#/">${t("area_overview")}</a><//></div>`;
  }
  return html`<${SaleView} key=${sale.id} sale=${sale} isNew=${made === sale.id} live=${live} samples=${samples} verdict=${html`<${Verdict} ...${audit} />`} onChanged=${onChanged} />`;
}

ready.then(() => render(html`<${App} />`, document.getElementById("page")));
