"""Stops all sales at once, and resumes those that were stopped like that."""

from collections.abc import Iterator
from typing import Any

from rich.markup import escape

from seckill.cli.api_connection import ACTED_WITHIN_S, connected
from seckill.cli.output import console, instant, print_json, table
from seckill.client import Client, Conflict, NoAnswer, Unavailable, access_requests, requests
from seckill.errors import SeckillError

# The reason that the record gives for a sale stopped together with all others. Only such sales are resumed together.
STOPPED = "all sales are stopped"
RECORD_MAX = 100


def pause_all(reason: str | None, *, as_json: bool, url: str | None) -> None:
    """Also pauses sales that are sold out, because units may come back, and sales that have not begun."""
    why = STOPPED if reason is None else f"{STOPPED}: {reason}"
    with connected(url, repeat_for_s=0, within_s=ACTED_WITHIN_S) as client:
        done = []
        for sale in _all(client):
            if sale["state"] == "ended":
                continue
            # A sale that another operator or the audit has paused is not resumed with the others. It is paused once
            # more, because the audit lifts a pause of its own.
            apart = sale["state"] == "paused" and not sale.get("waits_for_codes")
            done.append(_act(client, sale, "pause", reason if apart else why))
    _print(done, as_json, nothing="No sale is on or to come.")


def resume_all(reason: str | None, *, as_json: bool, url: str | None) -> None:
    with connected(url, repeat_for_s=0, within_s=ACTED_WITHIN_S) as client:
        stopped = [sale for sale in _all(client) if sale["state"] == "paused" and _was_stopped(client, sale["id"])]
        done = [_act(client, sale, "resume", reason) for sale in stopped]
    _print(done, as_json, nothing="No sale is paused that `seckill sale pause --all` has paused.")


def next_opening(sale: dict[str, Any]) -> str | None:
    """Says what a pause does not stop."""
    if sale["repeat"] is None or not sale["next_rounds"]:
        return None
    return (
        f"The next round, at {instant(sale['next_rounds'][0])}, will open all the same: "
        f"`seckill sale hide {sale['id']}` stops all of them until `sale publish`, `sale close` for good."
    )


def _all(client: Client) -> Iterator[dict[str, Any]]:
    """Yields the sales that are on or to come: the first answer has all of them."""
    found = client.document(requests.sales())
    yield from found["sales"]


def _was_stopped(client: Client, sale_id: str) -> bool:
    """Whether the newest entry on record about the sale's selling says that all sales were stopped."""
    found = client.document(access_requests.record(sale_id=sale_id, what="sale.*", limit=RECORD_MAX))
    words = [entry for entry in found["entries"] if entry["what"] in ("sale.paused", "sale.resumed", "sale.closed")]
    return bool(words) and words[0]["what"] == "sale.paused" and (words[0]["why"] or "").startswith(STOPPED)


def _act(client: Client, sale: dict[str, Any], verb: str, reason: str | None) -> dict[str, Any]:
    """Returns what has become of this sale. It never raises, so that the others are tried as well."""
    try:
        return {"sale": client.document(requests.act_on_sale(sale["id"], verb, reason))}
    except (Conflict, Unavailable, NoAnswer) as error:
        stored = isinstance(error, Unavailable) and error.code == "not_in_force"
        shown = error.problem["sale"] if stored and isinstance(error, Unavailable) else sale
        return {"sale": shown, "problem": str(error), "stored": stored}


def _print(done: list[dict[str, Any]], as_json: bool, nothing: str) -> None:
    failed = [each for each in done if "problem" in each and not each["stored"]]
    if as_json:
        print_json({"sales": done})
    elif not done:
        console().print(nothing)
    else:
        listed = table("id", "title", "state", "")
        for each in done:
            sale = each["sale"]
            said = each.get("problem") or next_opening(sale) or ""
            listed.add_row(sale["id"], escape(sale["title"]), sale["state"], escape(said))
        console().print(listed)
    if failed:
        raise SeckillError(f"{len(failed)} of {len(done)} sales could not be changed: {failed[0]['problem']}")
