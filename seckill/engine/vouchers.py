"""Voucher codes: operators upload and redeem them, and buyers see their own. The ledger gives them out when an order
becomes `paid`."""

from collections.abc import AsyncIterator, Mapping, Sequence

import structlog

from seckill.domain.order import OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Sale
from seckill.domain.voucher import Pool, Voucher
from seckill.engine.orders.buyer_orders import OrderView
from seckill.engine.rounds.opening import bring_to_gate
from seckill.engine.sale_cache import SaleCache
from seckill.errors import GateError, LedgerError
from seckill.ports.gate import OpeningGate
from seckill.ports.ledger import SyncLedger
from seckill.ports.vouchers import Clash, PoolLedger, Redeemed, UploadLedger
from seckill.telemetry import VOUCHERS_REDEEMED, VOUCHERS_UPLOADED

log = structlog.get_logger()

# An upload that has been silent for this long died with its process.
IDLE_S = 60.0
CLEARED_AT_ONCE = 5000

# Orders that have codes, or had some.
_WITH_CODES = {OrderState.PAID, OrderState.REFUNDED}


class NoCodes(Exception):
    """The upload contains no codes."""


class CodesClash(Exception):
    """Some of the codes are there already, so none of them was added."""

    def __init__(self, clashes: Sequence[Clash]) -> None:
        super().__init__(f"{len(clashes)} codes are there already")
        self.clashes = clashes


class VoucherDesk:
    def __init__(
        self, uploads: UploadLedger, pool: PoolLedger, rounds: SyncLedger, gate: OpeningGate, sale_cache: SaleCache
    ) -> None:
        self._uploads = uploads
        self._pool = pool
        self._rounds = rounds
        self._gate = gate
        self._sale_cache = sale_cache

    async def upload(self, sale: Sale, item: int, portions: AsyncIterator[Sequence[tuple[int, str]]]) -> int:
        """Adds all the codes or none, for one item or for any (NO_ITEM). Each comes with the number of its line.
        Returns how many. Raises CodesClash, NoCodes, UploadGivenUp, and whatever `portions` raises."""
        upload_id = await self._uploads.begin_upload(sale.id, item)
        count = 0
        try:
            async for portion in portions:
                if clashes := await self._uploads.add_codes(upload_id, portion):
                    raise CodesClash(clashes)
                count += len(portion)
            if count == 0:
                raise NoCodes
            changed = await self._uploads.complete_upload(upload_id)
        except BaseException:
            await self._give_up(upload_id)
            raise
        VOUCHERS_UPLOADED.inc(count)
        if changed is not None:
            await self._open(changed)
        return count

    async def _give_up(self, upload_id: int) -> None:
        try:
            await self._uploads.give_up_upload(upload_id)
        except LedgerError as error:  # it will be cleared away, since it stays silent from now on
            log.warning("an upload of codes is left to the keeper", upload=upload_id, reason=str(error))

    async def _open(self, sale: Sale) -> None:
        """Opens the sale's rounds at once if all servers answer; otherwise the keeper does."""
        self._sale_cache.put(sale)
        try:
            for round_ in await self._rounds.rounds_to_sync():
                if round_.sale_id == sale.id:
                    await bring_to_gate(round_, self._gate, self._rounds)
        except (GateError, LedgerError) as error:
            log.warning("a sale that has its codes waits for the keeper", sale=sale.id, reason=str(error))

    async def pool(self, sale: Sale) -> Pool:
        return await self._pool.pool(sale.id)

    async def show(self, orders: Sequence[OrderView]) -> Mapping[OrderNumber, Sequence[Voucher]]:
        """Returns the codes of these orders, where their sales give codes. From now on the codes count as shown."""
        giving = [order for order in orders if self._gives(order.sale_id)]
        wanted = [order.number for order in giving if order.state in _WITH_CODES]
        found = await self._pool.show(wanted) if wanted else {}
        return {order.number: found.get(order.number, ()) for order in giving}

    def _gives(self, sale_id: int) -> bool:
        sale = self._sale_cache.sale(sale_id)
        return sale is None or sale.vouchers

    async def find(self, code: str) -> Voucher | None:
        return await self._pool.voucher(code)

    async def redeem(self, code: str) -> Redeemed:
        redeemed = await self._pool.redeem(code)
        VOUCHERS_REDEEMED.labels(redeemed.outcome.value).inc()
        return redeemed

    async def tidy(self) -> None:
        """A step of the keeper: clears away dead uploads, and opens rounds that have enough codes by now."""
        while await self._uploads.clear_uploads(IDLE_S, CLEARED_AT_ONCE) == CLEARED_AT_ONCE:
            pass
        for sale in await self._pool.cover_rounds():
            log.info("a round has its codes", sale=sale.id)
