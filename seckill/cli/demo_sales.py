"""Sales to try things out with."""

import time

from seckill.bootstrap.engine import Engine
from seckill.bootstrap.use_cases import UseCases
from seckill.domain.sale import Sale, SaleDraft, SaleState
from seckill.settings import Settings

LASTING_MS = 30 * 24 * 3600 * 1000


async def demo_sale(engine: Engine, settings: Settings) -> str | None:
    """Makes two sales once: goods with a price and a free voucher. Returns the id of the first that is open now;
    those that are free come last, because what is shown next is how to pay."""
    sales = await engine.ledger.sales()
    now_ms = time.time_ns() // 1_000_000
    if not sales:
        desk = UseCases(engine, settings).operator_desk
        for lane, (title, units, price_cents) in enumerate(
            [("Demo phone · 演示手机", 100, 99_00), ("Demo voucher · 演示优惠券", 1000, 0)]
        ):
            draft = SaleDraft(
                title=title,
                units=units,
                limit_per_buyer=1,
                price_cents=price_cents,
                currency="CNY",
                begins_ms=now_ms,
                ends_ms=now_ms + LASTING_MS,
                pay_within_s=settings.pay_within_s,
                cool_down_s=settings.cool_down_s,
            )
            sales.append(await desk.announce(draft, lane % settings.lanes))
    for sale in sorted(sales, key=lambda sale: (sale.price_cents == 0, sale.id)):
        if await _is_open(engine, sale, now_ms):
            return engine.sale_ids.encode(sale.id)
    return None


async def _is_open(engine: Engine, sale: Sale, now_ms: int) -> bool:
    view = await engine.gate.inspect(sale.round.ref)
    sold_out = view is not None and view.available == 0
    return sale.state(now_ms, sold_out) is SaleState.OPEN
