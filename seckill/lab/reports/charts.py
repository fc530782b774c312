"""Bars in inline SVG. They start at zero, carry their numbers, and are told apart by label as well as by colour."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

BAR_HEIGHT = 18
# Leaves room for the number to the right of the longest bar.
LONGEST_PERCENT = 62


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar. `look` is a class of the style sheet."""

    name: str
    look: str
    value: float


@dataclass(frozen=True, slots=True)
class Bar:
    """Parts are laid end to end. `note` stands after them."""

    parts: Sequence[Part]
    note: str


@dataclass(frozen=True, slots=True)
class Row:
    label: str
    bars: Sequence[Bar]


def chart(title: str, rows: Sequence[Row], *, mark: tuple[str, float] | None = None) -> str:
    """`mark`: a line across all rows, with its name."""
    longest = max([sum(part.value for part in bar.parts) for row in rows for bar in row.bars], default=0)
    longest = max(longest, mark[1] if mark else 0)
    looks = {part.look: part.name for row in rows for bar in row.bars for part in bar.parts}
    legend = "".join(
        f'<li><svg width="14" height="14" aria-hidden="true"><rect width="14" height="14" class="{look}"/></svg>'
        f"{escape(name)}</li>"
        for look, name in looks.items()
    )
    if mark:
        legend += (
            '<li><svg width="14" height="14" aria-hidden="true"><line x1="7" x2="7" y2="14" class="mark"/></svg>'
            f"{escape(mark[0])}</li>"
        )
    drawn = "".join(_row(row, longest, mark) for row in rows)
    return f'<figure><figcaption>{escape(title)}</figcaption><ul class="legend">{legend}</ul>{drawn}</figure>'


def _row(row: Row, longest: float, mark: tuple[str, float] | None) -> str:
    bars = "".join(_bar(bar, longest, mark) for bar in row.bars)
    return f'<div class="row"><div class="label">{escape(row.label)}</div><div class="bars">{bars}</div></div>'


def _bar(bar: Bar, longest: float, mark: tuple[str, float] | None) -> str:
    scale = LONGEST_PERCENT / longest if longest else 0.0
    at = 0.0
    drawn = ""
    for part in bar.parts:
        width = part.value * scale
        if part.value:
            drawn += f'<rect x="{at:.2f}%" width="{width:.2f}%" height="{BAR_HEIGHT}" class="{part.look}"/>'
        at += width
    note_at = at
    if mark:
        place = mark[1] * scale
        drawn += f'<line x1="{place:.2f}%" x2="{place:.2f}%" y2="{BAR_HEIGHT}" class="mark"/>'
        note_at = max(at, place)
    return (
        f'<svg width="100%" height="{BAR_HEIGHT}" role="img" aria-label="{escape(bar.note)}">{drawn}'
        f'<text x="{note_at:.2f}%" dx="6" y="13">{escape(bar.note)}</text></svg>'
    )
