"""The record of what operators have changed, over the API."""

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.markup import escape

from seckill.cli.api_connection import connected
from seckill.cli.output import console, instant, print_json, table
from seckill.cli.parameters import AsJson, OptionalWhole, Url, moment
from seckill.client import access_requests as requests

app = App(name="record", help="List and export the record of who has changed what.")

PORTION = 1000
_WRITTEN = "such as 2026-11-20T10:00:00+08:00."
Who = Annotated[str | None, Parameter(help="Only what this operator has done.")]
What = Annotated[str | None, Parameter(help="Only this; `sale.*` stands for all that begin with it.")]
SaleOption = Annotated[str | None, Parameter(name="--sale", help="Only about this sale.")]
Since = Annotated[datetime | None, Parameter(converter=moment, help=f"Then or later, {_WRITTEN}")]
Until = Annotated[datetime | None, Parameter(converter=moment, help=f"Before, {_WRITTEN}")]


@app.command(name="list")
def list_(
    *,
    who: Who = None,
    what: What = None,
    sale: SaleOption = None,
    since: Since = None,
    until: Until = None,
    limit: OptionalWhole = None,
    after: Annotated[str | None, Parameter(help="Go on after this entry.")] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List the record, newest first, a page at a time.

    Parameters
    ----------
    limit
        How many, 1 to 1000; 20 if not given.
    """
    wanted = requests.record(who=who, what=what, sale_id=sale, since=since, until=until, limit=limit, after=after)
    with connected(url) as client:
        found = client.document(wanted)
    if as_json:
        print_json(found)
        return
    listed = table("id", "when", "who", "what", "of", "before → after", "why")
    for entry in found["entries"]:
        listed.add_row(
            entry["id"],
            instant(entry["at"]),
            escape(entry["who"]),
            entry["what"],
            escape(entry["subject"]),
            escape(_change(entry)),
            escape(entry["why"] or ""),
        )
    console().print(listed if found["entries"] else "Nothing is on the record.")
    if found["next"] is not None:
        console().print(f"There is more: --after {found['next']}")


@app.command
def export(
    *,
    who: Who = None,
    what: What = None,
    sale: SaleOption = None,
    since: Since = None,
    until: Until = None,
    url: Url = None,
) -> None:
    """Export all entries that match, newest first, to the standard output: a JSON document a line."""
    after: str | None = None
    with connected(url) as client:
        while True:
            wanted = requests.record(
                who=who, what=what, sale_id=sale, since=since, until=until, limit=PORTION, after=after
            )
            page: dict[str, Any] = client.document(wanted)
            sys.stdout.writelines(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in page["entries"])
            after = page["next"]
            if after is None:
                return


def _change(entry: dict[str, Any]) -> str:
    return "; ".join(_changes(entry["before"] or {}, entry["after"] or {}))


def _changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    for name in {**before, **after}:
        if name in before and name in after:
            yield f"{name}: {_shown(before[name])} → {_shown(after[name])}"
        elif name in after and after[name] not in (None, "", [], False):
            yield f"{name}: {_shown(after[name])}"
        elif name in before:
            yield f"{name}: was {_shown(before[name])}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
