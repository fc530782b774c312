"""Cancels or refunds every order of a sale that allows it, one after the other. Each request has a key of its own, so
the command may be interrupted and run again, and nothing is done twice."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from seckill.cli.api_connection import connected
from seckill.cli.output import console, print_json
from seckill.client import Client, Conflict, Invalid, NoAnswer, NotFound, Unavailable, requests
from seckill.client.requests import Request
from seckill.domain.order import OrderState
from seckill.errors import SeckillError

SAY_EVERY_S = 10.0
# How many of the orders that could not be changed are named.
NAMED_MAX = 5

Wish = Callable[[str, str], Request[Any]]


def act_on_all(
    sale_id: str, state: OrderState, verb: str, wish: Wish, *, as_json: bool = False, url: str | None = None
) -> None:
    """`verb`: what the orders are afterwards, such as `refunded`. `wish`: makes the request from an order's id and its
    key."""
    with connected(url) as client:
        sale = client.document(requests.sale(sale_id))
        orders = _orders(client, sale["id"], state)
        left: dict[str, str] = {}
        with _progress(f"{verb}, of {len(orders)}", len(orders)) as advance:
            for done, order_id in enumerate(orders):
                try:
                    client.document(wish(order_id, f"{verb}-all-{order_id}"))
                except (Conflict, Invalid, NotFound) as error:  # it has changed meanwhile, or cannot be
                    left[order_id] = str(error)
                except (NoAnswer, Unavailable) as error:
                    raise SeckillError(
                        f"{done - len(left)} of {len(orders)} orders were {verb}, then: {error} Run it again: it "
                        "goes on where it was."
                    ) from error
                advance()
    if as_json:
        print_json({"sale_id": sale["id"], "found": len(orders), "done": len(orders) - len(left), "left": left})
    else:
        console().print(f"{len(orders) - len(left)} of {len(orders)} orders that were {state.value} are {verb}.")
        if sale["state"] in ("open", "scheduled"):
            console().print(f"The sale is {sale['state']}, and there may be more: `seckill sale pause {sale['id']}`.")
    if left:
        some = "; ".join(f"{order_id}: {why}" for order_id, why in list(left.items())[:NAMED_MAX])
        raise SeckillError(f"{len(left)} orders were not {verb}: {some}")


def _orders(client: Client, sale_id: str, state: OrderState) -> list[str]:
    portions = client.export_orders("jsonl", sale_id=sale_id, state=state)
    return [json.loads(line)["order_id"] for portion in portions for line in portion.splitlines()]


@contextmanager
def _progress(title: str, total: int) -> Iterator[Callable[[], None]]:
    """Shows a bar on a terminal, otherwise a line now and then. It goes to stderr, because the result goes to
    stdout."""
    if sys.stderr.isatty():
        columns = TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("", total=total)
            yield lambda: bar.advance(task)
        return
    done, said_s = 0, time.monotonic()

    def advance() -> None:
        nonlocal done, said_s
        done += 1
        if time.monotonic() - said_s >= SAY_EVERY_S:
            said_s = time.monotonic()
            sys.stderr.write(f"{title}: {done}\n")

    yield advance
