// What the shop has said for itself: its ids, and its facts as JSON.

import { t } from "../i18n.js";
import { html } from "../ui.js";

/** `ids`: text → id, of which those that are not there are left out. */
export function OwnFacts({ ids, metadata = null }) {
  const known = Object.entries(ids).filter(([, id]) => id != null);
  if (known.length === 0 && metadata === null) return null;
  return html`<dl class="own-facts">
    ${known.map(([name, id]) => html`<div key=${name}><dt>${t(name)}</dt><dd><code>${id}</code></dd></div>`)}
    ${metadata !== null && html`<div><dt>${t("own_metadata")}</dt><dd><pre tabindex="0"><code>${JSON.stringify(metadata, null, 2)}</code></pre></dd></div>`}
  </dl>`;
}
