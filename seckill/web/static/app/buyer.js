// The buyers' pages: the list of sales, one sale with its order, and the orders of whoever is signed in.

import { render } from "../vendor/preact/preact.mjs";
import { useEffect, useState } from "../vendor/preact/hooks.mjs";
import { backoffMs, base, call, canSignIn, goToShop, meta, signIn, signOut, takeTokenFromAddress, tryToken, whoami } from "./api.js";
import { keepClock, nowMs } from "./clock.js";
import { count, exactTime, ready, sentences, spoken, t } from "./i18n.js";
import { lazily, part } from "./lazily.js";
import { OrdersPage, SalesPage } from "./lists.js";
import { OrderPage, SalePage } from "./sale.js";
import { Dialog, LanguageSwitch, TestBanner, html, useLanguage, useRepeated } from "./ui.js";

// For rounds with a draw, and for those that are over: not for whoever waits for a button.
const Story = lazily(() => part("story", { useState, backoffMs, call, count, exactTime, nowMs, sentences, spoken, t, html, useRepeated }));

const brought = takeTokenFromAddress(); // before anything else can see the address
keepClock();

function App() {
  useLanguage();
  const [me, setMe] = useState(whoami());
  const [asking, setAsking] = useState(false);
  const [other, setOther] = useState(null); // whom a link would sign in instead
  const [notice, setNotice] = useState(""); // what became of a link, as the name of a text
  const refresh = () => {
    setMe(whoami());
    setAsking(false);
  };
  const follow = async (token) => {
    setNotice("");
    setOther(null);
    try {
      if (token !== null) setOther(await tryToken(token));
    } catch (error) {
      setNotice(error.status === 401 ? "link_refused" : "link_untried");
    }
    refresh();
  };
  useEffect(() => {
    const changed = () => follow(takeTokenFromAddress());
    addEventListener("hashchange", changed);
    follow(brought ?? takeTokenFromAddress()); // one may have come before anybody listened
    return () => removeEventListener("hashchange", changed);
  }, []);
  const askToSignIn = () => (meta("demo") === "on" ? setAsking(true) : goToShop());
  const leave = () => {
    signOut();
    refresh();
  };
  const page = { me, onSignIn: askToSignIn, onSignedOut: leave };
  return html`<${TestBanner} />
    <header class="top">
      <a class="shop" href=${`${base}/`}>${meta("shop")}</a>
      <nav aria-label=${t("navigation")}>
        ${me && html`<a href=${`${base}/orders`}>${t("my_orders")}</a>`}
        <${LanguageSwitch} />
        ${me
          ? html`<span class="name" dir="auto">${me.name}</span><button type="button" class="link" data-action="sign-out" onClick=${leave}>${t("sign_out")}</button>`
          : canSignIn() && html`<button type="button" class="link" onClick=${askToSignIn}>${t("sign_in")}</button>`}
      </nav>
    </header>
    <main>
      ${me && notice && html`<p class="notice" role="status">${t(notice, { name: me.name })}</p>`}
      <${Route} ...${page} />
    </main>
    <${Dialog} open=${asking} light=${true} title=${t("sign_in")} onClose=${() => setAsking(false)}>
      <${DemoSignIn} onDone=${refresh} />
    <//>
    <${SwitchPerson} me=${me} other=${other} onDone=${() => {
      setOther(null);
      refresh();
    }} />`;
}

/** Names both. Whoever does nothing stays who they are. */
function SwitchPerson({ me, other, onDone }) {
  const [name, theirs] = [me?.name, other?.name];
  const go = () => {
    signIn(other.token, theirs);
    onDone();
  };
  return html`<${Dialog} open=${other !== null && me !== null} title=${t("switch_title")} onClose=${onDone}>
    <p>${t("switch_effect", { name, other: theirs })}</p>
    <div class="buttons">
      <button type="button" class="button primary" data-action="stay" autofocus onClick=${onDone}>${t("switch_stay", { name })}</button>
      <button type="button" class="button quiet" data-action="switch" onClick=${go}>${t("switch_go", { other: theirs })}</button>
    </div>
  <//>`;
}

const Afterwards = (shown) => (["sold_out", "ended"].includes(shown.sale.state) || shown.sale.order !== "press") && html`<${Story} ...${shown} />`;

function Route(page) {
  const [, area, id] = location.pathname.slice(base.length).split("/");
  if (area === "sales" && id) return html`<${SalePage} saleId=${decodeURIComponent(id)} Afterwards=${Afterwards} ...${page} />`;
  if (area === "orders" && id) return html`<${OrderPage} orderId=${decodeURIComponent(id)} ...${page} />`;
  if (area === "orders") return html`<${OrdersPage} ...${page} />`;
  return html`<${SalesPage} ...${page} />`;
}

function DemoSignIn({ onDone }) {
  const [name, setName] = useState(localStorage.getItem("seckill.demo-name") ?? "");
  const [problem, setProblem] = useState("");
  const submit = async (event) => {
    event.preventDefault();
    try {
      const { token } = await call("POST", "/v1/demo/sign-in", { body: { name } });
      localStorage.setItem("seckill.demo-name", name);
      signIn(token, name.trim());
      onDone();
    } catch (error) {
      setProblem(t(error.status === 422 ? "wrong_name" : "offline"));
    }
  };
  return html`<form onSubmit=${submit}>
    <p>${t("demo_sign_in_why")}</p>
    <label class="field">
      <span>${t("your_name")}</span>
      <input name="name" required maxlength="40" autocomplete="off" value=${name} onInput=${(event) => setName(event.target.value)} autofocus />
    </label>
    <p class="problem" role="alert">${problem}</p>
    <button type="submit" class="button primary">${t("sign_in")}</button>
  </form>`;
}

ready.then(() => {
  const page = document.getElementById("page");
  page.replaceChildren(); // what the server has drawn meanwhile
  render(html`<${App} />`, page);
});
