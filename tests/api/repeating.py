"""Helpers for the tests of repeating sales: they make rounds one after the other, and look at them."""

from typing import Any

from seckill.bootstrap.engine import Engine
from seckill.domain.recurrence import Recurrence
from seckill.domain.sale import Sale, SaleChange
from seckill.engine.keeper import Keeper
from seckill.engine.rounds.opening import Sync, bring_to_gate
from tests.api.conftest import OPERATOR, Node
from tests.backends.sql.making import HOUR_MS, draft
from tests.making import use_cases

DAY_MS = 24 * HOUR_MS


def make_keeper(engine: Engine) -> Keeper:
    return use_cases(engine).keeper


async def announce(node: Node, begins_ms: int, ends_ms: int, **facts: Any) -> Sale:
    """A daily sale whose first round has this window."""
    recurrence = Recurrence(repeat="daily", timezone="UTC", begins_ms=begins_ms, window_ms=ends_ms - begins_ms)
    wanted = draft(begins_ms=begins_ms, ends_ms=ends_ms, recurrence=recurrence, **facts)
    sale = await node.engine.ledger.create_sale(wanted, lane=0)
    await open_(node, sale)
    return sale


async def add(node: Node, after: Sale, begins_ms: int, ends_ms: int) -> Sale:
    sale = await node.engine.ledger.add_round(after.round, begins_ms, ends_ms, lane=1)
    assert sale is not None
    await open_(node, sale)
    return sale


async def end_at(node: Node, sale: Sale, ends_ms: int) -> Sale:
    changed = await node.engine.ledger.change_sale(sale.id, SaleChange(ends_ms=ends_ms), sale.round.id)
    assert changed is not None
    await open_(node, changed)
    return changed


async def open_(node: Node, sale: Sale) -> None:
    assert await bring_to_gate(sale.round, node.engine.gate, node.engine.ledger) is Sync.DONE
    await node.refresh()


def shown(node: Node, sale: Sale) -> dict[str, Any]:
    return {"id": node.engine.sale_ids.encode(sale.id)}


async def now_ms(node: Node) -> int:
    return (await node.engine.gate.pulses([]))[0]


def stop_clock(node: Node, at_ms: int) -> None:
    """The node believes that it is this time, and stays with it. The gate's own clock goes on."""
    sale_cache = node.api.context.sale_cache
    sale_cache._monotonic = lambda: 0.0
    sale_cache._gate_ms = (at_ms, 0.0)


async def look(node: Node, sale: Sale) -> dict[str, Any]:
    found: dict[str, Any] = (await node.http.get(f"/v1/sales/{shown(node, sale)['id']}")).json()
    return found


async def custody(node: Node, sale: Sale, round_id: object) -> dict[str, Any]:
    url = f"/v1/sales/{shown(node, sale)['id']}/custody?round={round_id}"
    response = await node.http.get(url, headers=OPERATOR)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    assert found["round"] == str(round_id)
    where = ("available", "queued", "unpaid", "paid", "returning", "dead")
    assert found["total"] == sum(found[place] for place in where)
    return found


async def ended_and_next(node: Node, gap_ms: int, ago_ms: int = 0, **facts: Any) -> tuple[Sale, Sale, dict[str, Any]]:
    """ann has bought with the key k in a round that has ended since. The next begins `gap_ms` after that."""
    started_ms = await now_ms(node)
    first = await announce(node, started_ms - HOUR_MS, started_ms + HOUR_MS, **facts)
    won: dict[str, Any] = (await node.buy(shown(node, first), "ann", key="k")).json()
    assert won["round"] == str(first.round.id)
    boundary_ms = await now_ms(node) - ago_ms
    first = await end_at(node, first, boundary_ms)
    second = await add(node, first, boundary_ms + gap_ms, boundary_ms + gap_ms + HOUR_MS)
    return first, second, won
