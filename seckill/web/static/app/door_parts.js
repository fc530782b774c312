// What only a sale for some, or with a pass, needs: its texts, whom it is for, and how a pass is had, by a proof of work
// or the widget of a captcha service. embed.js loads it into pages of other origins, so it is given everything that
// depends on the page (`tools`, see door.js).

import { trusted, worked } from "./worker.js";

// A pass that ends sooner is renewed, so that it does not end on the way.
const RENEW_BEFORE_MS = 2 * 60_000;
const WAIT_MS_MAX = 60_000;

/** The widget of the captcha service, which all of them call in the same way. Its script comes when it is needed. */
async function responded(siteKey, place, address) {
  const services = () => globalThis.turnstile ?? globalThis.hcaptcha ?? globalThis.grecaptcha;
  if (!services()) {
    await new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = trusted(address);
      script.onload = resolve;
      script.onerror = () => reject(new Error("The check cannot be loaded."));
      document.head.append(script);
    });
  }
  return new Promise((resolve) => {
    const show = () => services().render(place, { sitekey: siteKey, callback: resolve });
    if (services().ready && !services().render) services().ready(show);
    else show();
  });
}

/** The sale as it is for this person: who may come early sees their own beginning. */
function forMe(sale, me) {
  const isMine = ({ groups }) => groups.some((group) => me?.groups.includes(group));
  const minutes = (sale.audience?.early ?? []).filter(isMine).map((early) => early.minutes);
  if (minutes.length === 0) return sale;
  const begins = Date.parse(sale.begins_at) - Math.max(...minutes) * 60_000;
  return { ...sale, begins_at: new Date(begins).toISOString() };
}

export function make({ html, t, roundTime, nowMs, call, sleep, backoffMs, script }) {
  const list = (names) => names.join(t("comma"));

  function AudienceFacts({ sale, now }) {
    const { groups = [], early = [], list: listed = false } = sale.audience ?? {};
    const begins = Date.parse(sale.begins_at);
    const whom = [...groups, ...(listed ? [t("the_invited")] : [])];
    return html`
      ${whom.length > 0 && html`<p class="facts" data-audience>${t("for_groups", { groups: list(whom) })}</p>`}
      ${early.map((each) => html`<p class="facts" key=${each.minutes} data-early>${t("early_groups", { groups: list(each.groups), time: roundTime(begins - each.minutes * 60_000, now) })}</p>`)}`;
  }

  /** Asks until there is a pass. Throws Refused: there is none to be had. `script`: the captcha widget's. */
  async function obtain(sale, token, { isWanted, place }) {
    let answer = {};
    for (let tries = 0; isWanted(); tries += 1) {
      try {
        const given = await call("POST", `/v1/sales/${sale.id}/pass`, { token, body: answer });
        if (given.pass) return given;
        if (given.kind === "work") {
          const { challenge, salt, signature } = given;
          answer = { solution: { challenge, salt, signature, number: await worked("./work.js", given) } };
        } else {
          answer = { response: await responded(given.site_key, place(), script), ticket: given.ticket };
        }
      } catch (error) {
        const { code, status, problem } = error;
        answer = {}; // whatever was wrong with it, another challenge may do
        if (code === "not_started") await sleep(Math.min(WAIT_MS_MAX, Math.max(0, Date.parse(problem.opens_at) - nowMs())) + 2_000 * Math.random());
        else if (status < 500 && code !== "rate_limited" && code !== "invalid") throw error; // one without a status is no refusal
        else await sleep((error.retryAfterMs ?? 0) + backoffMs(tries));
      }
    }
    return null;
  }

  /** Has a pass at hand for as long as `isWanted`. `onState` is told how it is: `preparing`, `ready`, `refused`, or `none`
   * for somebody who is not invited, and is told so when they press. `place()`: where a widget may appear. */
  function keepPass(sale, { user, token }, { isWanted, onState, place }) {
    const storedAt = `seckill.pass.${user}.${sale.id}.${sale.round}`;
    const wants = { isWanted, place };
    let current;
    let timer;
    const stored = () => {
      try {
        const found = JSON.parse(sessionStorage.getItem(storedAt));
        return found && Date.parse(found.expires_at) - nowMs() > RENEW_BEFORE_MS ? found : null;
      } catch {
        return null;
      }
    };
    const ask = () => {
      clearTimeout(timer);
      onState("preparing");
      const found = Promise.resolve(stored() ?? obtain(sale, token, wants));
      current = found;
      found.then(
        (pass) => {
          if (pass === null || current !== found || !isWanted()) return;
          sessionStorage.setItem(storedAt, JSON.stringify(pass));
          onState("ready");
          timer = setTimeout(() => isWanted() && ask(), Math.max(1_000, Date.parse(pass.expires_at) - nowMs() - RENEW_BEFORE_MS));
        },
        ({ code }) => current === found && onState(code === "not_invited" ? "none" : "refused"),
      );
    };
    ask();
    return {
      get: async () => (await current)?.pass ?? null,
      renew() {
        sessionStorage.removeItem(storedAt);
        ask();
      },
    };
  }

  /** Quiet: nobody has to do anything, unless the widget says so. */
  const PassNote = ({ pass }) => html`<div class="pass" data-pass=${pass.state}>
    <p class="facts" role="status">${t(`pass_${pass.state}`)}</p>
    ${pass.state === "preparing" && html`<div class="widget" ref=${pass.widget}></div>`}
  </div>`;

  return { AudienceFacts, PassNote, forMe, keepPass };
}
