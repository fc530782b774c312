"""Webhooks with real processes: a keeper that is killed between sending and noting loses nothing."""

import asyncio
from pathlib import Path

from sqlalchemy import update

from seckill.backends.sql import open_ledger
from seckill.backends.sql.tables import webhooks
from seckill.client import AsyncClient
from tests.backends.sql.looking import write
from tests.e2e.stack import Stack, running
from tests.patience import PATIENCE_S
from tests.receiver import Receiver, in_order

KILLED = "failpoint webhooks.send.after: kill"
ORDERS = 6


async def test_killed_after_sending_it_is_sent_again_and_nothing_is_lost(folder: Path) -> None:
    stack = Stack(folder, api=1)
    async with Receiver().running() as receiver:
        async with running(stack, SECKILL_FAILPOINTS="webhooks.send.after=kill"):
            operator = operating(stack)
            hook = await operator.create_webhook(receiver.url(), types=["order.*"])
            sale = await stack.create_sale(units=ORDERS, price_cents=0)
            for number in range(ORDERS):
                await operator.signed_in(stack.token(f"buyer-{number}")).claim(sale["id"])
            cursors = await told(operator)
            await receiver.until(lambda: bool(receiver.taken))
            async with asyncio.timeout(PATIENCE_S):
                while not stack.logged(KILLED):  # the window is hit
                    await asyncio.sleep(0.05)
            await operator.close()
        first = {each.id for each in receiver.taken}
        ledger = open_ledger(stack.settings.database_url)
        await write(ledger, update(webhooks).values(lease_ms=1))  # half a minute later
        await ledger.close()
        async with running(stack), operating(stack) as operator:
            await receiver.until(lambda: {each.id for each in receiver.taken} == set(cursors))
            async with asyncio.timeout(PATIENCE_S):
                while (now := await operator.webhook(hook.id)).behind or now.waiting:
                    await asyncio.sleep(0.1)
    sent_again = {event_id for (_, event_id), times in receiver.times().items() if times > 1}
    assert first
    assert first <= sent_again, "what was sent and not noted"
    assert in_order(receiver.taken, cursors)
    for received in receiver.taken:
        received.verified_with(str(hook.secret))


def operating(stack: Stack) -> AsyncClient:
    key = stack.settings.admin_key
    assert key is not None
    return AsyncClient(stack.url, key.reveal())


async def told(operator: AsyncClient) -> dict[str, int]:
    """The cursors of the events of all orders, once they are written: a free one is created and paid."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = (await operator.events(types=["order.*"])).events
            if len(found) == 2 * ORDERS:
                return {event.id: event.cursor for event in found}
            await asyncio.sleep(0.1)
