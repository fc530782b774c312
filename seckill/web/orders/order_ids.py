"""Makes the public ids of a batch of orders together, at a sixth of what they cost one by one."""

from collections.abc import Sequence

from seckill.domain.admission import Answer
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.domain.public_id import PublicIds

_ADMITTED = Outcome.ADMITTED  # looking up a member of an enum is slow


class OrderIds:
    def __init__(self, public_ids: PublicIds) -> None:
        self._public_ids = public_ids
        # For the batch that is being answered, by counter: its numbers differ in nothing else.
        self._prepared: dict[int, str] = {}
        self._second = self._lane = -1

    def prepare(self, answers: Sequence[Answer]) -> None:
        """Called before the waiting clients get these answers."""
        numbers = [answer.holdings[0].number for answer in answers if answer.outcome is _ADMITTED]
        if numbers:
            common = int(numbers[0]) - numbers[0].counter
            counters = [number.counter for number in numbers]
            ids = self._public_ids.encode_all([common | counter for counter in counters])
            self._prepared = dict(zip(counters, ids, strict=True))
            self._second, self._lane = numbers[0].seconds, numbers[0].lane

    def of(self, number: OrderNumber) -> str:
        prepared = self._prepared.get(number.counter)
        if prepared is None or number.seconds != self._second or number.lane != self._lane:
            return self._public_ids.encode(int(number))
        return prepared
