"""`GET /sales/{id}/calendar.ics`: when a sale begins, for a buyer's calendar (RFC 5545)."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.outcome import Outcome
from seckill.web.context import context
from seckill.web.mounting import prefix_in
from seckill.web.problems import HttpProblem
from seckill.web.sales.sales import view
from seckill.web.schemas import Sale

MAX_AGE_S = 60
ALARM_MINUTES = 5
LINE_BYTES_MAX = 75
_HOST = re.compile(r"[\w.-]+(:\d+)?|\[[0-9a-fA-F:.]+\](:\d+)?")


async def show_calendar(request: Request) -> Response:
    ctx = context(request)
    found = await ctx.sale_cache.find(request.path_params["sale_id"])
    if found is None:
        raise HttpProblem.of(Outcome.UNKNOWN_SALE)
    sale = view(ctx, found)
    host = request.headers.get("host", "")
    shop = ctx.settings.public_url.rstrip("/")  # a proxy in front of us may use https
    if not shop and _HOST.fullmatch(host):
        shop = f"{request.url.scheme}://{host}{prefix_in(request.scope)}"
    here = f"{shop}/sales/{sale.id}" if shop else None
    stamp = datetime.fromtimestamp(ctx.sale_cache.now_ms() / 1000, UTC)
    headers = {
        "Cache-Control": f"public, max-age={MAX_AGE_S}",
        "Content-Disposition": f'attachment; filename="sale-{sale.id}.ics"',
        "X-Content-Type-Options": "nosniff",
    }
    return Response(calendar_of(sale, here, stamp), 200, headers, "text/calendar; charset=utf-8")


def calendar_of(sale: Sale, address: str | None, stamp: datetime) -> bytes:
    """Contains this round and the next ones, as far as they are known."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//seckill//EN", "METHOD:PUBLISH"]
    begins, ends = (datetime.fromisoformat(at) for at in (sale.begins_at, sale.ends_at))
    windows = [(begins, ends)] if sale.state != "ended" else []
    windows += [(at, at + (ends - begins)) for at in map(datetime.fromisoformat, sale.next_rounds)]
    for begin, end in windows:
        lines += _event(sale, address, stamp, begin, end)
    lines.append("END:VCALENDAR")
    return b"".join(_folded(line) for line in lines)


def _event(sale: Sale, address: str | None, stamp: datetime, begin: datetime, end: datetime) -> Iterator[str]:
    yield "BEGIN:VEVENT"
    yield f"UID:{sale.id}-{_time(begin)}@seckill"
    yield f"DTSTAMP:{_time(stamp)}"
    yield f"DTSTART:{_time(begin)}"
    yield f"DTEND:{_time(max(end, begin + timedelta(seconds=1)))}"
    yield f"SUMMARY:{_text(sale.title)}"
    if address is not None:
        yield f"URL:{address}"
        yield f"DESCRIPTION:{_text(address)}"
    yield from ("BEGIN:VALARM", "ACTION:DISPLAY", f"DESCRIPTION:{_text(sale.title)}", f"TRIGGER:-PT{ALARM_MINUTES}M")
    yield from ("END:VALARM", "END:VEVENT")


def _time(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _text(value: str) -> str:
    return re.sub(r"([\\;,])", r"\\\1", value).replace("\n", "\\n")


def _folded(line: str) -> bytes:
    """At most 75 bytes to a line, and none in the middle of a character."""
    lines = [b""]
    for char in line:
        encoded = char.encode()
        if len(lines[-1]) + len(encoded) > LINE_BYTES_MAX:
            lines.append(b" ")
        lines[-1] += encoded
    return b"\r\n".join(lines) + b"\r\n"
