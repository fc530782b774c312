// The buyers' pages: the list of sales, one sale with its order, and the orders of whoever is signed in.

import { render } from "../vendor/preact/preact.mjs";
import { useEffect, useState } from "../vendor/preact/hooks.mjs";
import { call, canSignIn, meta, signIn, signOut, takeTokenFromAddress, whoami } from "./api.js";
import { keepClock } from "./clock.js";
import { chooseLanguage, currentLanguage, t } from "./i18n.js";
import { OrdersPage, SalesPage } from "./lists.js";
import { OrderPage, SalePage } from "./sale.js";
import { Dialog, LanguageSwitch, html, useLanguage } from "./ui.js";

takeTokenFromAddress(); // before anything else can see the address
keepClock();

function App() {
  useLanguage();
  const [me, setMe] = useState(whoami());
  const [asking, setAsking] = useState(false);
  const refresh = () => {
    setMe(whoami());
    setAsking(false);
  };
  useEffect(() => {
    const changed = () => {
      takeTokenFromAddress();
      refresh();
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  const askToSignIn = () => (meta("demo") === "on" ? setAsking(true) : goToShop());
  const leave = () => {
    signOut();
    refresh();
  };
  const page = { me, onSignIn: askToSignIn, onSignedOut: leave };
  return html`<header class="top">
      <a class="shop" href="/">${meta("shop")}</a>
      <nav aria-label=${t("navigation")}>
        ${me && html`<a href="/orders">${t("my_orders")}</a>`}
        <${LanguageSwitch} />
        ${me
          ? html`<button type="button" class="link" onClick=${leave} title=${t("sign_out")}>${t("sign_out_name", { name: me.name })}</button>`
          : canSignIn() && html`<button type="button" class="link" onClick=${askToSignIn}>${t("sign_in")}</button>`}
      </nav>
    </header>
    <main><${Route} ...${page} /></main>
    <${Dialog} open=${asking} title=${t("sign_in")} onClose=${() => setAsking(false)}>
      <${DemoSignIn} onDone=${refresh} />
    <//>`;
}

function Route(page) {
  const [, area, id] = location.pathname.split("/");
  if (area === "sales" && id) return html`<${SalePage} saleId=${decodeURIComponent(id)} ...${page} />`;
  if (area === "orders" && id) return html`<${OrderPage} orderId=${decodeURIComponent(id)} ...${page} />`;
  if (area === "orders") return html`<${OrdersPage} ...${page} />`;
  return html`<${SalesPage} ...${page} />`;
}

/** The shop signs people in and sends them back with #token=…. */
function goToShop() {
  const target = new URL(meta("sign-in"));
  target.searchParams.set("return", location.origin + location.pathname);
  location.assign(target);
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

chooseLanguage(currentLanguage());
render(html`<${App} />`, document.getElementById("page"));
