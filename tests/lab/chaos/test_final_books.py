"""The books are read when nothing is done any more, but time goes on."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from seckill.audit import Auditor, Report, open_auditor
from seckill.bootstrap.engine import open_engine
from seckill.engine.orders.releases import ReleaseDesk
from seckill.lab.chaos.evidence import Evidence
from seckill.lab.chaos.final_books import Closing
from tests.api.conftest import make_node, settings_of_a_node
from tests.lab.chaos.test_judgement import wrong

Step = Callable[[], Awaitable[object]]


class Meanwhile:
    """An auditor after each of whose first readings something happens."""

    def __init__(self, auditor: Auditor, *steps: Step) -> None:
        self._auditor = auditor
        self._steps = list(steps)

    async def read(self, **how: Any) -> Report:
        report = await self._auditor.read(**how)
        if self._steps:
            await self._steps.pop(0)()
        return report


@pytest.mark.parametrize("at_once", [True, False], ids=["back at once", "back later"])
async def test_an_order_that_ends_while_the_books_are_read_is_no_leak(
    redis_url: str, sqlite_database: str, at_once: bool
) -> None:
    settings = settings_of_a_node(redis_url, sqlite_database)
    async with open_engine(settings) as engine, open_auditor(settings, every_round=True) as auditor:
        node = await make_node(settings, engine)
        desk = ReleaseDesk(engine.gate, engine.transport, engine.ledger)
        sale = await node.create(units=5, pay_within_s=1)
        await node.refresh()
        assert (await node.buy(sale, "ann")).status_code == 202
        await node.work()

        async def expire() -> None:
            while not await desk.expire():
                pass

        async def expire_and_pass_on() -> None:
            await expire()
            await desk.pass_on()

        steps: tuple[Step, ...] = (expire_and_pass_on,) if at_once else (expire, desk.pass_on)
        evidence = Evidence()
        closing = Closing(settings, Meanwhile(auditor, *steps), evidence, lambda: 0.0)  # type: ignore[arg-type]
        try:
            await closing.read_books([])
        finally:
            await closing.close()
            await node.http.aclose()
    (round_,) = evidence.books.rounds
    assert (round_.available, round_.live) == (5, 0)
    assert "leaked" not in wrong(evidence)
