"""One bad entry never holds up the others.

An entry that the ledger refuses is set aside in the ledger itself and leaves the stream. It is tried again after each
of the delays, unless its epoch is over, which no delay can change. Then it is given up: it gets a row with the state
`failed` (which wins against any later commit), its units are released, a dead letter keeps the whole history, and an
alarm is raised. An unreachable database is not the entry's fault and does not count as a try.
"""

from collections.abc import Sequence

import structlog

from seckill.domain.dead_letter import Letter, LetterState
from seckill.domain.order import OrderState
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.errors import EpochOver, LedgerRefused, NotPossible
from seckill.ports.broker import Delays
from seckill.ports.ledger import DeadLetterLedger
from seckill.ports.queue_entry import read_entry, salvage
from seckill.telemetry import DEAD_LETTERS

log = structlog.get_logger()

BATCH_MAX = 100


class DeadLetterDesk:
    def __init__(
        self, ledger: DeadLetterLedger, alarm: Alarm, delays_s: Sequence[float], delays: Delays | None = None
    ) -> None:
        self._ledger = ledger
        self._alarm = alarm
        self._delays_s = tuple(delays_s)
        self._delays = delays

    async def retry_due(self) -> int:
        """Tries the letters that are due again. Returns how many there were."""
        due = await self._ledger.letters_due(BATCH_MAX)
        for letter in due:
            await self._retry(letter)
        return len(due)

    async def _retry(self, letter: Letter) -> None:
        refused = await self._try(letter)
        if refused is None:
            await self._ledger.close_letter(letter, LetterState.RECORDED)
            log.info("a later try has worked", letter=letter.id, attempts=letter.attempts)
            return
        # A buyer who waits for an order that can never be written is told so at once.
        hopeless = isinstance(refused, EpochOver)
        if letter.attempts < len(self._delays_s) and not hopeless:
            delay_s = self._delays_s[letter.attempts]
            if await self._ledger.put_off(letter, str(refused), delay_s) and self._delays is not None:
                await self._delays.remind_of_retry(delay_s, letter.payload, str(refused))
        else:
            await self._bury(letter, str(refused))

    async def _try(self, letter: Letter) -> LedgerRefused | None:
        """Returns None if the entry is in the ledger now, otherwise why not."""
        delivery = read_entry(letter.lane, letter.entry_id, letter.payload.encode())
        if delivery.admission is None:
            return LedgerRefused(delivery.problem)
        try:
            await self._ledger.record([delivery.admission])
        except LedgerRefused as error:
            return error
        return None

    async def _bury(self, letter: Letter, reason: str) -> None:
        payload = letter.payload.encode()
        admission = read_entry(letter.lane, letter.entry_id, payload).admission or salvage(letter.lane, payload)
        try:
            state = await self._ledger.bury(letter, admission, reason)
        except LedgerRefused:  # not even as failed: a person has to look at it, and the other letters go on
            await self._ledger.close_letter(letter, LetterState.DEAD)
            state = None
        if state is None or state is OrderState.FAILED:
            DEAD_LETTERS.inc()
            order = None if letter.number is None else int(letter.number)
            facts = {"letter": letter.id, "order": order, "reason": reason}
            await self._alarm.raise_(AlarmCause.ORDER_FAILED, facts)
            if self._delays is not None:
                await self._delays.give_up(letter.payload, reason)

    async def dead(self, count: int) -> list[Letter]:
        """Returns the letters that were given up, newest first."""
        return await self._ledger.letters(LetterState.DEAD, count)

    async def find(self, letter_id: int) -> Letter | None:
        return await self._ledger.letter(letter_id)

    async def replay(self, letter_id: int) -> Letter:
        """Tries once more for an operator. Raises NotPossible with the reason."""
        letter = await self._dead(letter_id)
        if letter.number is not None and (order := await self._ledger.order(letter.number)) is not None:
            raise NotPossible(f"The order of dead letter {letter_id} is {order.state} already.")
        delivery = read_entry(letter.lane, letter.entry_id, letter.payload.encode())
        if delivery.admission is None:
            raise NotPossible(f"Dead letter {letter_id} cannot be written: {delivery.problem}")
        try:
            await self._ledger.close_letter(letter, LetterState.RECORDED, delivery.admission)
        except LedgerRefused as refused:
            raise NotPossible(f"Dead letter {letter_id} cannot be written: {refused}") from refused
        return letter

    async def discard(self, letter_id: int) -> Letter:
        letter = await self._dead(letter_id)
        await self._ledger.close_letter(letter, LetterState.DISCARDED)
        return letter

    async def _dead(self, letter_id: int) -> Letter:
        letter = await self._ledger.letter(letter_id)
        if letter is None:
            raise NotPossible(f"There is no dead letter {letter_id}.")
        if letter.state is not LetterState.DEAD:
            raise NotPossible(f"Letter {letter_id} is {letter.state}, not dead.")
        return letter
