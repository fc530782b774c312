// Every process that runs, from whichever is asked.

import { count, t, time } from "../i18n.js";
import { Chip, html } from "../ui.js";
import { roleOf } from "./health.js";

export function Nodes({ nodes, now }) {
  if (nodes.length === 0) return html`<p class="facts">${t("no_nodes")}</p>`;
  return html`<div class="scroll" tabindex="0" role="group" aria-labelledby="nodes-title"><table class="nodes-table">
    <thead>
      <tr>
        <th scope="col">${t("role")}</th><th scope="col">${t("state")}</th><th scope="col">${t("host")}</th>
        <th scope="col" class="number">${t("process")}</th><th scope="col">${t("since")}</th>
        <th scope="col" class="number">${t("claims")}</th><th scope="col" class="number">${t("written")}</th><th scope="col">${t("version")}</th>
      </tr>
    </thead>
    <tbody>
      ${nodes.map(
        (node) => html`<tr key=${node.id}>
          <td>${roleOf(node.role)}</td>
          <td><${Chip} state=${node.state} label=${node.state === "ok" ? t("node_ok") : t("node_silent", { time: time(Date.parse(node.seen_at), now) })} /></td>
          <td class="text">${node.host}</td>
          <td class="number" data-label=${t("process")}>${node.pid}</td>
          <td data-label=${t("since")}>${time(Date.parse(node.started_at), now)}</td>
          <${Done} many=${node.role === "api" ? node.claims : null} label=${t("claims")} />
          <${Done} many=${node.role === "worker" ? node.recorded : null} label=${t("written")} />
          <td data-label=${t("version")}>${node.version}</td>
        </tr>`,
      )}
    </tbody>
  </table></div>`;
}

/** What only some of them do. */
const Done = ({ many, label }) => html`<td class=${`number${many === null ? " none" : ""}`} data-label=${label}>${many === null ? "–" : count(many)}</td>`;
