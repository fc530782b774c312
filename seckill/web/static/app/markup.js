// A little Markdown, made into elements and never into HTML: what is not understood stays text.

import { html } from "./ui.js";

const INLINE = /\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|\[([^\]\n]+)\]\((https?:\/\/[^\s()<>"]+)\)/g;
const HEADING = /^#{1,6} +/;
const ITEM = /^[-*] +/;
const NUMBERED = /^[0-9]{1,3}[.)] +/;

export const Markup = ({ text }) => html`<div class="markup" dir="auto">${blocks(text).map((block, index) => html`<${Block} key=${index} block=${block} />`)}</div>`;

/** Lines of one kind stand together; an empty line parts them. */
function blocks(text) {
  const found = [];
  let open = null;
  for (const line of text.split("\n")) {
    const kind = kindOf(line);
    if (kind === "empty" || kind === "heading" || open?.kind !== kind) open = null;
    if (kind === "empty") continue;
    if (open === null) found.push((open = { kind, lines: [] }));
    open.lines.push(line.replace({ heading: HEADING, list: ITEM, numbered: NUMBERED }[kind] ?? "", "").trim());
  }
  return found;
}

function kindOf(line) {
  if (line.trim() === "") return "empty";
  if (HEADING.test(line)) return "heading";
  if (ITEM.test(line)) return "list";
  return NUMBERED.test(line) ? "numbered" : "paragraph";
}

function Block({ block: { kind, lines } }) {
  const items = () => lines.map((line, index) => html`<li key=${index}>${inline(line)}</li>`);
  if (kind === "heading") return html`<h3>${inline(lines[0])}</h3>`;
  if (kind === "list") return html`<ul>${items()}</ul>`;
  if (kind === "numbered") return html`<ol>${items()}</ol>`;
  return html`<p>${lines.map((line, index) => [index > 0 && html`<br />`, inline(line)])}</p>`;
}

function inline(text) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    const [all, bold, italic, label, address] = match;
    parts.push(text.slice(end, match.index));
    if (bold) parts.push(html`<strong>${bold}</strong>`);
    else if (italic) parts.push(html`<em>${italic}</em>`);
    else parts.push(html`<${Outside} href=${address}>${label}<//>`);
    end = match.index + all.length;
  }
  return [...parts, text.slice(end)];
}

/** A link to somebody else's page, which learns nothing of this one. */
export const Outside = ({ href, children }) => html`<a href=${href} target="_blank" rel="noopener noreferrer nofollow">${children}</a>`;
