"""One bad entry never holds up the others.

What the ledger refuses is set aside in the ledger itself and leaves the stream. It is tried again after each of the
delays; then it is given up: a row that says `failed` (which wins against any later commit), the release of its units,
a dead letter with the whole history, and an alarm. A database that is away is nobody's failure and counts no try.
"""

from collections.abc import Sequence

import structlog

from seckill.alarms import Alarm
from seckill.broker_ports import Delays
from seckill.domain import OrderState
from seckill.entries import read_entry, salvage
from seckill.errors import LedgerRefused, NotPossible
from seckill.letters import Letter, LetterState
from seckill.ports import Ledger
from seckill.telemetry import DEAD_LETTERS

log = structlog.get_logger()

BATCH_MAX = 100


class Failures:
    def __init__(self, ledger: Ledger, alarm: Alarm, delays_s: Sequence[float], delays: Delays | None = None) -> None:
        self._ledger = ledger
        self._alarm = alarm
        self._delays_s = tuple(delays_s)
        self._delays = delays

    async def retry_due(self) -> int:
        """Tries again what is due. Returns how many letters there were."""
        due = await self._ledger.letters_due(BATCH_MAX)
        for letter in due:
            await self._retry(letter)
        return len(due)

    async def _retry(self, letter: Letter) -> None:
        reason = await self._try(letter)
        if reason is None:
            await self._ledger.close_letter(letter, LetterState.RECORDED)
            log.info("a later try has worked", letter=letter.id, attempts=letter.attempts)
        elif letter.attempts < len(self._delays_s):
            delay_s = self._delays_s[letter.attempts]
            if await self._ledger.put_off(letter, reason, delay_s) and self._delays is not None:
                await self._delays.remind_of_retry(delay_s, letter.payload, reason)
        else:
            await self._bury(letter, reason)

    async def _try(self, letter: Letter) -> str | None:
        """None if it is in the ledger now, otherwise why not."""
        delivery = read_entry(letter.lane, letter.entry_id, letter.payload.encode())
        if delivery.admission is None:
            return delivery.problem
        try:
            await self._ledger.record([delivery.admission])
        except LedgerRefused as error:
            return str(error)
        return None

    async def _bury(self, letter: Letter, reason: str) -> None:
        payload = letter.payload.encode()
        admission = read_entry(letter.lane, letter.entry_id, payload).admission or salvage(letter.lane, payload)
        try:
            state = await self._ledger.bury(letter, admission, reason)
        except LedgerRefused:  # not even as failed: it holds up no other, and a person has to look at it
            await self._ledger.close_letter(letter, LetterState.DEAD)
            state = None
        if state is None or state is OrderState.FAILED:
            DEAD_LETTERS.inc()
            order = None if letter.number is None else int(letter.number)
            facts = {"letter": letter.id, "order": order, "reason": reason}
            await self._alarm.raise_("an order has failed for good", facts)
            if self._delays is not None:
                await self._delays.give_up(letter.payload, reason)

    async def replay(self, letter_id: int) -> Letter:
        """An operator wants one more try. Raises NotPossible with the reason."""
        letter = await self._dead(letter_id)
        if letter.number is not None and (order := await self._ledger.order(letter.number)) is not None:
            raise NotPossible(f"The order of dead letter {letter_id} is {order.state} already.")
        reason = await self._try(letter)
        if reason is not None:
            raise NotPossible(f"Dead letter {letter_id} cannot be written: {reason}")
        await self._ledger.close_letter(letter, LetterState.RECORDED)
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
