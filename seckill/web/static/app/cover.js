// A picture for what has none: its initial on a quiet ground. The same title has the same cover, wherever it is sold.
// The server draws the same (first_view.py), so that nothing changes when this page takes over.

import { html } from "./ui.js";

const PALETTES = 6;
const PLACES = [
  [292, 20],
  [28, 160],
  [300, 150],
  [20, 24],
];

function hashOf(text) {
  let hash = 2166136261;
  for (const char of text) hash = Math.imul(hash ^ char.codePointAt(0), 16777619);
  return hash >>> 0;
}

export function Cover({ title }) {
  const hash = hashOf(title.trim().toLowerCase());
  const [x, y] = PLACES[(hash >>> 16) % PLACES.length];
  const [initial = ""] = title.match(/[\p{L}\p{N}]/u) ?? [];
  return html`<svg class=${`cover p${(hash >>> 8) % PALETTES}`} viewBox="0 0 320 180" preserveAspectRatio="xMidYMid slice" aria-hidden="true">
    <rect class="c0" width="320" height="180" />
    <circle class="c1" cx=${x} cy=${y} r="132" />
    <circle class="c2" cx=${x} cy=${y} r="72" />
    <text class="c3" x="160" y="90">${initial.toUpperCase()}</text>
  </svg>`;
}
