// @ts-check
// <seckill-sale sale="…" token-url="…" lang="…" theme="…">: a sale in a page of the shop.
//
// Everything is inside of a shadow root, and of this module: nothing is put on window, no style gets out or in, but for
// the custom properties that the shop sets on the element.

import { languageFor } from "../seckill/web/static/app/languages.js";
import { css, makeApp, serverFacts } from "seckill:built";

/** @typedef {import("../seckill/web/static/seckill-api").components["schemas"]["Order"]} Order */
/** @typedef {import("../seckill/web/static/seckill-api").components["schemas"]["Problem"]} Problem */
/** @typedef {import("../seckill/web/static/seckill-api").components["schemas"]["Entry"]} Entry */
/** @typedef {{ token: string, user: string, name: string }} Holder */
/** @typedef {ReturnType<typeof makeApp>} App */

// Wherever the script was loaded from, there is the API: /embed.js or /embed/<version>.js, under whatever path.
const BASE = import.meta.url.replace(/\/embed(\/[^/]*)?\.js([?#].*)?$/, "");
const TOKEN_TRIES = 4;

/** One for each language, as one page has its texts in one language. @type {Map<string, App>} */
const apps = new Map();

/** @param {string} language */
function appIn(language) {
  const known = apps.get(language) ?? makeApp({ ...serverFacts, base: BASE, embedded: "on", language });
  apps.set(language, known);
  return known;
}

/** @type {Map<string, CSSStyleSheet>} */
const sheets = new Map();

/** Constructed, so that no policy of the page has to allow styles. @param {string} theme */
function sheetFor(theme) {
  const medium = { light: "not all", dark: "all" }[theme];
  const known = sheets.get(theme) ?? new CSSStyleSheet();
  if (!sheets.has(theme)) {
    known.replaceSync(medium === undefined ? css : css.replaceAll(/\s*\(prefers-color-scheme:\s*dark\)/g, ` ${medium}`));
    sheets.set(theme, known);
  }
  return known;
}

/** @param {Element} element */
function languageOf(element) {
  const near = element.closest("[lang]")?.getAttribute("lang");
  return languageFor(near ? [near, ...navigator.languages] : [...navigator.languages]);
}

class SeckillSale extends HTMLElement {
  static observedAttributes = ["sale", "token-url", "lang", "theme"];

  /** @type {HTMLElement | null} */
  #place = null;
  /** @type {App | null} */
  #app = null;
  /** @type {Holder | null} */
  #me = null;
  /** @type {Promise<void> | null} */
  #asking = null;
  /** @type {Map<string, string>} */
  #states = new Map();

  /** The buyer's token, as the shop signs it; null: nobody is signed in. */
  get token() {
    return this.#me?.token ?? null;
  }

  set token(value) {
    this.#take(value);
  }

  connectedCallback() {
    if (this.#place === null) {
      const root = this.attachShadow({ mode: "open" });
      this.#place = document.createElement("div");
      this.#place.className = "seckill";
      root.append(this.#place);
      root.addEventListener("click", (event) => this.#offerToPay(event), { capture: true });
    }
    // Set before this script was there, it would hide the property of the class.
    if (Object.hasOwn(this, "token")) {
      const given = this.token;
      delete (/** @type {any} */ (this).token);
      this.#take(given);
    }
    this.#show();
    if (this.#me === null) this.#ask("start");
  }

  disconnectedCallback() {
    if (this.#place !== null) this.#app?.clear(this.#place);
    this.#app = null;
  }

  /** @param {string} name @param {string | null} before @param {string | null} after */
  attributeChangedCallback(name, before, after) {
    if (before === after || !this.isConnected || this.#place === null) return;
    if (name === "token-url") this.#ask("start");
    this.#show();
  }

  #show() {
    const place = this.#place;
    if (place === null || !this.isConnected) return;
    const app = appIn(languageOf(this));
    if (this.#app !== app) this.#app?.clear(place);
    this.#app = app;
    /** @type {ShadowRoot} */ (this.shadowRoot).adoptedStyleSheets = [sheetFor(this.getAttribute("theme") ?? "auto")];
    const me = this.#me;
    app.show(place, {
      saleId: this.getAttribute("sale") ?? "",
      me,
      onSignIn: () => this.#ask("press"),
      onSignedOut: () => this.#refused(me),
      onOrder: (/** @type {Order & { found_as?: string }} */ order) => this.#tellOrder(order),
      onEntry: (/** @type {Entry} */ entry) => this.#tell("entry", { entry }),
      onRefused: (/** @type {string} */ code, /** @type {Problem} */ problem) => this.#tell("refused", { code, problem }),
    });
  }

  /** @param {string | null} token */
  #take(token) {
    this.#me = token ? appIn(languageOf(this)).holderOf(token) : null;
    if (token && this.#me === null) console.error("seckill-sale: this is not a token of a buyer.");
    this.#show();
  }

  // Where the token comes from: the page hands it over, when it likes or when it is told that one is needed, or it is
  // fetched from the shop, which knows its people by its own cookies.

  /** @param {"start" | "press" | "expired"} reason */
  #ask(reason) {
    this.#asking ??= this.#askFor(reason).finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  /** @param {"start" | "press" | "expired"} reason */
  async #askFor(reason) {
    const before = this.#me?.token;
    const isLeftToUs = this.#tell("token-needed", { reason }, true);
    if (this.#me !== null && this.#me.token !== before) return;
    const url = this.getAttribute("token-url");
    const app = appIn(languageOf(this));
    const token = url === null ? null : await this.#fetched(url, app, reason === "start" ? Infinity : TOKEN_TRIES);
    if (this.#me?.token !== before) return; // handed over meanwhile
    // One that replaces a token which was refused is tried first: nobody asks the shop over and over.
    const good = token !== null && (reason !== "expired" || (await app.accepts(token).catch(() => false)));
    if (good || before !== undefined) this.#take(good ? token : null);
    if (!good && reason === "press" && isLeftToUs && app.meta("sign-in") !== "") app.goToShop();
  }

  /** @param {string} url @param {App} app @param {number} tries @returns {Promise<string | null>} */
  async #fetched(url, app, tries) {
    for (let tried = 0; tried < tries && this.isConnected && this.getAttribute("token-url") === url; tried += 1) {
      try {
        const answer = await fetch(new URL(url, document.baseURI), {
          credentials: "include",
          cache: "no-store",
          headers: { Accept: "application/json" },
        });
        if (answer.ok && answer.status !== 204) return tokenIn(await answer.text());
        if (answer.status < 500 && answer.status !== 429) return null; // nobody is signed in
      } catch {
        // Nobody answered.
      }
      await app.sleep(app.backoffMs(tried));
    }
    return null;
  }

  /** @param {Holder | null} me */
  #refused(me) {
    if (me !== null && me.token === this.#me?.token) this.#ask("expired");
  }

  // What the page hears.

  /** Whether nobody has said that they see to it. @param {string} name @param {object} detail */
  #tell(name, detail, cancelable = false) {
    return this.dispatchEvent(new CustomEvent(`seckill-${name}`, { detail, bubbles: true, composed: true, cancelable }));
  }

  /** @param {Order & { found_as?: string }} shown */
  #tellOrder({ found_as: foundAs, ...order }) {
    if (this.#states.get(order.order_id) === order.state) return; // the same again, in another language
    this.#states.set(order.order_id, order.state);
    const isNews = order.state !== foundAs;
    this.#tell("order", { order, isNews });
    if (isNews && order.state === "paid") this.#tell("paid", { order });
  }

  /** @param {Event} event */
  #offerToPay(event) {
    const button = event.composedPath().find((node) => node instanceof Element && node.matches("[data-action=pay]"));
    const orderId = this.#place?.querySelector("[data-order-id]")?.getAttribute("data-order-id");
    if (button === undefined || !orderId) return;
    if (!this.#tell("pay", { orderId }, true)) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
  }
}

/** JSON with a `token`, or the token and nothing else. @param {string} text */
function tokenIn(text) {
  try {
    const { token } = JSON.parse(text);
    return typeof token === "string" ? token : null;
  } catch {
    return text.trim() || null;
  }
}

// Loaded twice, it is still one.
if (customElements.get("seckill-sale") === undefined) customElements.define("seckill-sale", SeckillSale);
