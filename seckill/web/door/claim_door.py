"""The checks before the gate: invitation and pass. They come after token and sale, and before anything else of a claim.

In a sale that is open to all, they cost a claim one look.
"""

from seckill.domain.audience import EVERYBODY
from seckill.domain.door import PassKind
from seckill.domain.outcome import Outcome
from seckill.domain.pass_seal import PassSeal
from seckill.domain.sale import Sale
from seckill.engine.access.access_book import BarredBuyers
from seckill.engine.claims.admission_desk import EDGE_MS
from seckill.engine.door.audience_check import Invitations, NotInvited
from seckill.engine.sale_cache import SaleCache
from seckill.web.buyers.buyer_tokens import Buyer
from seckill.web.buyers.token_groups import TokenGroups
from seckill.web.problems import HttpProblem

HEADER = b"seckill-pass"


class ClaimDoor:
    def __init__(
        self,
        invitations: Invitations,
        groups: TokenGroups,
        seal: PassSeal,
        sale_cache: SaleCache,
        barred: BarredBuyers,
    ) -> None:
        self._invitations = invitations
        self._groups = groups
        self._seal = seal
        self._sale_cache = sale_cache
        self.barred = barred

    def refuse_blocked(self, user: str) -> None:
        """Raises HttpProblem."""
        if self.barred.active and (blocked := self.barred.blocks(user)) is not False:
            raise HttpProblem.of(Outcome.NOT_READY if blocked is None else Outcome.BLOCKED)

    def pass_through(self, sale: Sale, buyer: Buyer, sent_pass: bytes | None) -> int:
        """Returns how many ms before others this buyer may buy. Raises HttpProblem."""
        early_ms = self.may_join(sale, buyer, sent_pass)
        if sale.door.line.draws and self._sale_cache.now_ms() < sale.round.ends_ms:
            raise HttpProblem.of(Outcome.JOIN_THE_LINE)  # units of this sale only go to buyers in its line
        return early_ms

    def may_join(self, sale: Sale, buyer: Buyer, sent_pass: bytes | None) -> int:
        """The same for a buyer who wants to join the line. Raises HttpProblem."""
        door = sale.door
        early_ms = self.invited(sale, buyer) if door.audience is not EVERYBODY else 0
        if door.pass_kind is not PassKind.NONE and not self._has_pass(sale, buyer.user, sent_pass or b""):
            raise HttpProblem.of(Outcome.PASS_REQUIRED)
        return early_ms

    def groups_of(self, sale: Sale, buyer: Buyer) -> tuple[str, ...]:
        """Returns the groups for an entry: whether its buyer is still invited is checked again when it is their
        turn."""
        return sale.door.audience.worth_keeping(self._groups.of(buyer))

    def invited(self, sale: Sale, buyer: Buyer) -> int:
        """The same for a buyer without a pass. Raises HttpProblem."""
        early_ms = self._invitations.early_ms(sale, buyer.user, self._groups.of(buyer))
        if early_ms is NotInvited.NOT_KNOWN:
            raise HttpProblem.of(Outcome.NOT_READY)
        if early_ms is NotInvited.NOT_INVITED:
            raise HttpProblem.of(Outcome.NOT_INVITED)
        return early_ms

    def _has_pass(self, sale: Sale, user: str, sent: bytes) -> bool:
        now_ms = self._sale_cache.now_ms()
        if self._seal.holds(sent, sale.round.id, user, now_ms / 1000):
            return True
        # Where one round follows another, only the gate knows which one is on, so a pass for either will do.
        beside = [(self._sale_cache.before(sale), sale.round.opens_ms)]
        following = self._sale_cache.following(sale)
        if following is not None:
            beside.append((following, following.round.opens_ms))
        return any(
            other is not None
            and abs(now_ms - edge_ms) < EDGE_MS
            and self._seal.holds(sent, other.round.id, user, now_ms / 1000)
            for other, edge_ms in beside
        )
