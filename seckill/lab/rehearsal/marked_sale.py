"""The sale of a rehearsal: it is marked, closed to real buyers, never takes money, and disappears from all lists
afterwards."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from seckill.client import ClientError, NoAnswer
from seckill.client.documents import Sale
from seckill.lab.rehearsal.deployment import MARK, OperatorSite

TITLE = "Rehearsal, nothing is sold · 演练，并非真实销售"
DESCRIPTION = "A test of this site by its operators. · 本站运营正在进行演练。"
# The sale ends this long after the load: late enough for what is still queued, and by itself in case we are killed.
ENDS_AFTER_S = 300
SMALLEST_PRICE_CENTS = 1
CLEAN_UP_WITHIN_S = 60.0
TRY_AGAIN_S = 0.5


def new_run() -> str:
    """Makes the name of a rehearsal: its buyers' names begin with it, and only buyers of this group may buy."""
    return f"{MARK}-{secrets.token_hex(4)}"


@dataclass(slots=True)
class MarkedSale:
    sale: Sale
    run: str
    closed: bool = False
    hidden: bool = False
    complaints: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return self.closed and self.hidden


@asynccontextmanager
async def marked_sale(
    site: OperatorSite, run: str, *, units: int, lasts_s: float, costs: bool, invited_only: bool, lanes: int
) -> AsyncIterator[MarkedSale]:
    """Closes and hides the sale at the end, whatever happens meanwhile. `costs`: the units have a price, so that buyers
    can pay where no money moves; unpaid orders lapse soon."""
    now = datetime.now(UTC)
    create = partial(
        site.client.create_sale,
        TITLE,
        description=DESCRIPTION,
        units=units,
        begins_at=now - timedelta(minutes=1),
        ends_at=now + timedelta(seconds=lasts_s + ENDS_AFTER_S),
        price_cents=SMALLEST_PRICE_CENTS if costs else 0,
        pay_within_s=int(lasts_s) + 60,
        external_id=run,
        metadata={MARK: True},
        audience={"groups": [run]} if invited_only else None,
        lanes=lanes,
        key=run,
    )
    try:
        sale = await create()
    except NoAnswer:  # the sale may exist all the same; with the same key, no second one is made
        sale = await create()
    marked = MarkedSale(sale, run)
    try:
        yield marked
    finally:
        await _clean_up(site, marked)


async def _clean_up(site: OperatorSite, marked: MarkedSale) -> None:
    """Repeats what fails: right after too much load, a deployment may need a moment."""
    give_up_s = time.monotonic() + CLEAN_UP_WITHIN_S
    while not marked.clean and time.monotonic() < give_up_s:
        with contextlib.suppress(ClientError):
            if not marked.closed:
                await site.client.close_sale(marked.sale.id)
                marked.closed = True
            if not marked.hidden:
                await site.client.change_sale(marked.sale.id, {"published": False})
                marked.hidden = True
        if not marked.clean:
            await asyncio.sleep(TRY_AGAIN_S)
    if not marked.clean:
        marked.complaints.append(
            f"The sale {marked.sale.id} could not be closed and hidden: `seckill sale close {marked.sale.id}` and "
            f"`seckill sale hide {marked.sale.id}`."
        )
