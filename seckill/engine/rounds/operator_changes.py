"""What operators do to sales. Each change goes to the ledger first and then at once to the gate."""

from dataclasses import replace

from seckill.domain.sale import Announced, AnnounceKey, Sale, SaleChange, SaleDraft
from seckill.engine.rounds.opening import Sync, bring_to_gate
from seckill.errors import GateError, LedgerError, SeckillError
from seckill.ports.gate import OpeningGate
from seckill.ports.ledger import OperatorLedger


class NotInForce(SeckillError):
    """The change is stored, but the gate does not have it yet. The keeper passes it on as soon as it can."""

    def __init__(self, sale: Sale) -> None:
        super().__init__("It is stored, so do not repeat it. It takes effect by itself as soon as everything answers.")
        self.sale = sale


class OperatorDesk:
    def __init__(self, ledger: OperatorLedger, gate: OpeningGate) -> None:
        self._ledger = ledger
        self._gate = gate

    async def announce(self, draft: SaleDraft, lane: int) -> Sale:
        """Raises ExternalIdTaken."""
        return await self._put_in_force(await self._ledger.create_sale(draft, lane))

    async def announce_once(self, draft: SaleDraft, lane: int, key: AnnounceKey) -> Announced:
        """Announces a sale once for each key, even if the key was used before or is being used at the same time."""
        return await self._in_force(await self._ledger.announce(draft, lane, key))

    async def announced(self, key: AnnounceKey) -> Announced | None:
        """Returns what was announced with that key before, if anything."""
        known = await self._ledger.announced(key)
        return None if known is None else await self._in_force(known)

    async def _in_force(self, made: Announced) -> Announced:
        return made if made.sale is None else replace(made, sale=await self._put_in_force(made.sale))

    async def change(self, known: Sale, change: SaleChange) -> Sale | None:
        """Changes the round that the operator has seen. Returns None if there is no such sale. Raises NotPossible if
        its state does not allow the change."""
        sale = await self._ledger.change_sale(known.id, change, known.round.id)
        return None if sale is None else await self._put_in_force(sale)

    async def _put_in_force(self, sale: Sale) -> Sale:
        if sale.round.retired_ms is not None:
            return sale  # only what the sale shows can have changed
        try:
            # Later rounds too: an operator who closes a sale must not see the next one open a moment later.
            later = [each for each in await self._ledger.rounds_to_sync() if each.sale_id == sale.id]
            rounds = [sale.round, *(each for each in later if each.ordinal > sale.round.ordinal)]
            synced = [await bring_to_gate(each, self._gate, self._ledger) for each in rounds]
        except (GateError, LedgerError) as error:
            raise NotInForce(sale) from error
        if Sync.LOST in synced:
            raise NotInForce(sale)
        return replace(sale, round=replace(sale.round, synced_revision=sale.round.revision))
