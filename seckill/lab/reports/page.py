"""The page around charts and tables. It works in light and dark, wide and narrow, and loads nothing from elsewhere."""

from collections.abc import Collection, Sequence
from enum import StrEnum
from html import escape

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2129; --faint: #5b6472; --line: #dfe3e8; --shade: #0003;
  --available: #8fa3b8; --queued: #c98500; --unpaid: #2f6fdb; --paid: #23895a; --returning: #7d55c7; --dead: #d6322d; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171c; --ink: #e8ebf0; --faint: #a2abb8; --line: #333a45;
  --shade: #000c; --available: #71859b; --queued: #e0a32e; --unpaid: #6ea2ff; --paid: #4cbd86; --returning: #ab8bec;
  --dead: #ff6b5e; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1080px; padding: 24px 16px 64px; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", sans-serif;
  font-variant-numeric: tabular-nums; }
.verdict { font-size: 24px; line-height: 1.3; font-weight: 600; margin: 0 0 8px;
  border-left: 4px solid var(--available); padding-left: 12px; }
.verdict.good { border-color: var(--paid); } .verdict.bad { border-color: var(--dead); }
.about { color: var(--faint); margin: 0 0 32px; }
h2 { font-size: 18px; margin: 40px 0 8px; }
figure { margin: 32px 0; }
figcaption { font-weight: 600; margin-bottom: 8px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; list-style: none; margin: 0 0 8px; padding: 0;
  color: var(--faint); font-size: 14px; }
.legend li { display: flex; align-items: center; gap: 6px; }
.row { display: flex; align-items: center; gap: 12px; padding: 3px 0; }
.label { flex: 0 0 160px; font-size: 14px; text-align: right; }
.bars { flex: 1; min-width: 0; display: grid; gap: 2px; }
svg { display: block; overflow: visible; }
svg text { fill: var(--ink); font-size: 12px; }
rect { shape-rendering: crispEdges; }
.available { fill: var(--available); } .queued { fill: var(--queued); } .unpaid { fill: var(--unpaid); }
.paid { fill: var(--paid); } .returning { fill: var(--returning); } .dead { fill: var(--dead); }
.missing { fill: transparent; stroke: var(--faint); stroke-dasharray: 3 3; }
.mark { stroke: var(--ink); stroke-width: 2; }
.line { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; } .line.paid { stroke: var(--paid); }
.line.queued { stroke: var(--queued); } .base { stroke: var(--line); } .band { fill: var(--dead); opacity: 0.12; }
.calm { fill: var(--available); opacity: 0.2; }
.panel { margin: 16px 0 4px; color: var(--faint); font-size: 14px; }
.axis { display: flex; justify-content: space-between; margin: 4px 0 0; color: var(--faint); font-size: 12px; }
/* A shadow at the side where there is more. */
.wide { overflow-x: auto; background:
  linear-gradient(90deg, var(--paper) 60%, transparent) left / 32px 100% local,
  linear-gradient(-90deg, var(--paper) 60%, transparent) right / 32px 100% local,
  linear-gradient(90deg, var(--shade), transparent) left / 12px 100% scroll,
  linear-gradient(-90deg, var(--shade), transparent) right / 12px 100% scroll; background-repeat: no-repeat; }
table { border-collapse: collapse; font-size: 14px; white-space: nowrap; }
th, td { padding: 6px 10px; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); }
th { font-weight: 600; vertical-align: bottom; }
td.bad { color: var(--dead); font-weight: 600; }
th.text, td.text { text-align: left; } td.text { white-space: normal; min-width: 220px; }
ul.method { padding-left: 20px; } ul.method li { margin: 4px 0; }
code { font: 14px ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
@media (max-width: 640px) { .row { display: block; } .label { text-align: left; } .verdict { font-size: 20px; } }
"""


class Tone(StrEnum):
    """The colour of the bar beside the verdict, as classes of the style sheet."""

    NEUTRAL = "verdict"
    GOOD = "verdict good"
    BAD = "verdict bad"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, text: Collection[str] = ()) -> str:
    """Cells are HTML, made with `cell`. `text`: columns of text, whose heads stand at the left as their cells do."""
    left = dict.fromkeys(text, ' class="text"')
    head = "".join(f"<th{left.get(column, '')}>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def cell(text: object, *, look: str = "", span: int = 1) -> str:
    attributes = (f' class="{look}"' if look else "") + (f' colspan="{span}"' if span > 1 else "")
    return f"<td{attributes}>{escape(str(text))}</td>"


def page(
    *,
    title: str,
    verdict: str,
    about: str,
    sections: Sequence[str],
    method: Sequence[str],
    command: str,
    tone: Tone = Tone.NEUTRAL,
) -> str:
    listed = "".join(f"<li>{escape(line)}</li>" for line in method)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
        f'<h1 class="{tone}">{escape(verdict)}</h1><p class="about">{escape(about)}</p>'
        f"{''.join(sections)}"
        f'<h2>Method</h2><ul class="method">{listed}</ul><p>Command: <code>{escape(command)}</code></p>'
        "</body></html>\n"
    )
