"""Sales to try things out with."""

import secrets
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

from seckill.bootstrap.engine import Engine
from seckill.bootstrap.use_cases import UseCases
from seckill.domain.goods import Goods
from seckill.domain.item import NO_ITEM
from seckill.domain.picture import Picture
from seckill.domain.sale import Sale, SaleDraft, SaleState
from seckill.settings import Settings

LASTING_MS = 30 * 24 * 3600 * 1000
_PICTURES = files("seckill.cli") / "demo_pictures"  # drawn by scripts/draw-demo-pictures
_WIDTH, _HEIGHT = 800, 600


@dataclass(frozen=True, kw_only=True)
class DemoGoods:
    title: str
    description: str
    picture: str
    units: int
    price_cents: int = 0
    list_price_cents: int | None = None
    vouchers: bool = False


_GOODS = (
    DemoGoods(
        title="Demo phone · 演示手机",
        description="A phone to try the shop with: nothing is sent, and no money moves.\n\n"
        "用来体验整个流程：不会发货，也不会真的扣款。",
        picture="phone.webp",
        units=100,
        price_cents=99_00,
        list_price_cents=199_00,
    ),
    DemoGoods(
        title="Demo voucher · 演示优惠券",
        description="Costs nothing. Once you have it, its code and QR code appear here.\n\n"
        "免费领取。领到后，本页会显示券码和二维码。",
        picture="voucher.webp",
        units=1000,
        vouchers=True,
    ),
)


async def demo_sale(engine: Engine, settings: Settings) -> str | None:
    """Makes two sales once: goods with a price and a free voucher. Returns the id of the first that is open now;
    those that are free come last, because what is shown next is how to pay."""
    sales = await engine.ledger.sales()
    now_ms = time.time_ns() // 1_000_000
    if not sales:
        sales = [
            await _announce(engine, settings, goods, now_ms, lane % settings.lanes) for lane, goods in enumerate(_GOODS)
        ]
    for sale in sorted(sales, key=lambda sale: (sale.price_cents == 0, sale.id)):
        if await _is_open(engine, sale, now_ms):
            return engine.sale_ids.encode(sale.id)
    return None


async def _announce(engine: Engine, settings: Settings, goods: DemoGoods, now_ms: int, lane: int) -> Sale:
    cases = UseCases(engine, settings)
    content = (_PICTURES / goods.picture).read_bytes()
    picture = Picture(digest=sha256(content).hexdigest(), content=content, width=_WIDTH, height=_HEIGHT)
    await engine.ledger.pictures.keep_picture(picture)
    shown = Goods(description=goods.description, images=(picture.address,), list_price_cents=goods.list_price_cents)
    draft = SaleDraft(
        title=goods.title,
        units=goods.units,
        limit_per_buyer=1,
        price_cents=goods.price_cents,
        currency="CNY",
        begins_ms=now_ms,
        ends_ms=now_ms + LASTING_MS,
        pay_within_s=settings.pay_within_s,
        cool_down_s=settings.cool_down_s,
        goods=shown,
        vouchers=goods.vouchers,
    )
    sale = await cases.operator_desk.announce(draft, lane)
    if goods.vouchers:
        await cases.vouchers.upload(sale, NO_ITEM, _codes(goods.units))
    return sale


async def _codes(many: int) -> AsyncIterator[Sequence[tuple[int, str]]]:
    yield [(line, f"DEMO-{secrets.token_hex(5).upper()}") for line in range(1, many + 1)]


async def _is_open(engine: Engine, sale: Sale, now_ms: int) -> bool:
    view = await engine.gate.inspect(sale.round.ref)
    sold_out = view is not None and view.available == 0
    return sale.state(now_ms, sold_out) is SaleState.OPEN
