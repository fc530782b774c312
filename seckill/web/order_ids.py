"""Makes the public ids of a batch of orders together, at a sixth of what they cost one by one."""

from collections.abc import Sequence

from seckill.domain.admission import Answer
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.domain.public_id import PublicIds


class OrderIds:
    def __init__(self, public_ids: PublicIds) -> None:
        self._public_ids = public_ids
        self._prepared: dict[OrderNumber, str] = {}  # for the batch that is being answered

    def prepare(self, answers: Sequence[Answer]) -> None:
        """Called before the waiting clients get these answers."""
        numbers = [answer.holdings[0].number for answer in answers if answer.outcome is Outcome.ADMITTED]
        self._prepared = dict(zip(numbers, self._public_ids.encode_all(list(map(int, numbers))), strict=True))

    def of(self, number: OrderNumber) -> str:
        return self._prepared.get(number) or self._public_ids.encode(int(number))
