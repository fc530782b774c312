// The voucher codes of an order that is paid: to be read, copied, or shown to a till. Loaded where there are some
// (lazily.js).

export function make({ useEffect, useState, backoffMs, call, t, html, useRepeated, CopyButton }) {
  /** What is pushed about an order leaves its codes out, so they are asked for. */
  function Codes({ order, token, onSignedOut }) {
    const [codes, setCodes] = useState(order.codes);
    useRepeated(
      async (isOver) => {
        if (codes !== undefined && codes.length === order.quantity) return Infinity;
        try {
          const found = await call("GET", `/v1/orders/${order.order_id}`, { token });
          if (!isOver()) setCodes(found.codes ?? []);
          return Infinity;
        } catch (error) {
          if (error.status === 401) return onSignedOut();
          return backoffMs(3);
        }
      },
      [order.order_id, order.state, token],
    );
    if (!codes?.length) return html`<p class="facts" role="status">${t(codes === undefined ? "loading" : "codes_gone")}</p>`;
    return html`<section class="codes" aria-labelledby="codes-title">
      <h2 id="codes-title">${t(codes.length === 1 ? "code_title" : "codes_title")}</h2>
      <ul>${codes.map((code) => html`<li key=${code}><${Code} code=${code} open=${codes.length === 1} /></li>`)}</ul>
      <p class="facts">${t("codes_secret")}</p>
    </section>`;
  }

  function Code({ code, open }) {
    const [shown, setShown] = useState(open);
    return html`<div class="code-line">
        <code class="code">${code}</code>
        <${CopyButton} text=${code} />
        ${!open && html`<button type="button" class="button quiet small" aria-expanded=${shown} onClick=${() => setShown(!shown)}>${t("qr")}</button>`}
      </div>
      ${shown && html`<${Qr} text=${code} />`}`;
  }

  /** Dark on light whatever the theme is: many readers take nothing else. */
  function Qr({ text }) {
    const [modules, setModules] = useState(null);
    useEffect(() => {
      let over = false;
      import("../vendor/uqr/uqr.mjs")
        .then(({ encode }) => over || setModules(encode(text, { ecc: "M", border: 4 }).data))
        .catch(() => {}); // the code itself is there to be read
      return () => {
        over = true;
      };
    }, [text]);
    if (modules === null) return html`<div class="qr" aria-hidden="true"></div>`;
    const size = modules.length;
    const path = modules.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ""))).join("");
    return html`<svg class="qr" viewBox=${`0 0 ${size} ${size}`} role="img" aria-label=${t("qr_of", { code: text })} shape-rendering="crispEdges">
      <rect width=${size} height=${size} fill="#fff" /><path d=${path} fill="#000" />
    </svg>`;
  }

  return Codes;
}
