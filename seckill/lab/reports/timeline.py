"""Lines over time in inline SVG, with what happened behind them. They start at zero and share one time axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 1000
HEIGHT = 120
STRIP = 36


@dataclass(frozen=True, slots=True)
class TimelineLine:
    """`look` is a class of the style sheet."""

    name: str
    look: str
    points: Sequence[tuple[float, float]]  # seconds and value


@dataclass(frozen=True, slots=True)
class Span:
    begins_s: float
    ends_s: float
    name: str


@dataclass(frozen=True, slots=True)
class SpanKind:
    """The name of the spans, and their classes in the style sheet behind the lines and below them."""

    name: str
    band: str
    strip: str


FAULTS = SpanKind("faults", "band", "dead")
PHASES = SpanKind("phases", "calm", "available")


def timeline(title: str, lines: Sequence[TimelineLine], spans: Sequence[Span], kind: SpanKind = FAULTS) -> str:
    """Draws one panel for each line, then the spans by name. The pointer over a span shows its details."""
    ends = [at_s for line in lines for at_s, _ in line.points] + [span.ends_s for span in spans]
    longest_s = max(ends, default=0) or 1.0
    panels = "".join(_panel(line, spans, longest_s, kind.band) for line in lines)
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>{panels}{_strip(kind, spans, longest_s)}"
        f'<p class="axis"><span>0 s</span><span>{longest_s:.0f} s</span></p></figure>'
    )


def _panel(line: TimelineLine, spans: Sequence[Span], longest_s: float, band: str) -> str:
    most = max([value for _, value in line.points], default=0) or 1.0
    bands = "".join(_rect(span, longest_s, HEIGHT, band) for span in spans)
    drawn = " ".join(
        f"{at_s / longest_s * WIDTH:.1f},{HEIGHT - value / most * HEIGHT:.1f}" for at_s, value in line.points
    )
    label = f"{line.name}, {most:,.0f} at most"
    return (
        f'<p class="panel">{escape(label)}</p>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" height="{HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}"><line x1="0" x2="{WIDTH}" y1="{HEIGHT}" y2="{HEIGHT}" class="base"/>{bands}'
        f'<polyline points="{drawn}" class="line {line.look}"/></svg>'
    )


def _strip(kind: SpanKind, spans: Sequence[Span], longest_s: float) -> str:
    drawn = "".join(_rect(span, longest_s, STRIP, kind.strip) for span in spans)
    return (
        f'<p class="panel">{escape(kind.name)}</p>'
        f'<svg viewBox="0 0 {WIDTH} {STRIP}" width="100%" height="{STRIP}" preserveAspectRatio="none" role="img" '
        f'aria-label="the {escape(kind.name)}">{drawn}</svg>'
    )


def _rect(span: Span, longest_s: float, height: int, look: str) -> str:
    begins = span.begins_s / longest_s * WIDTH
    width = max((span.ends_s - span.begins_s) / longest_s * WIDTH, 1.0)
    says = f"{span.begins_s:.1f} s: {span.name}"
    return (
        f'<rect x="{begins:.1f}" width="{width:.1f}" height="{height}" class="{look}">'
        f"<title>{escape(says)}</title></rect>"
    )
