"""Makes one reading after another, each with a verdict for every invariant.

A reading always includes the counters: a few statements, however many orders there are. Orders are compared one by one
when a full audit is wanted, or when a round's counters look wrong, and otherwise as often as it takes a hundredth of
the time.

Anything that looks wrong is read a second time, and only counts if it is still wrong. What is broken stays broken,
while a server that was restarted during a reading, or was replaced without knowing it yet, may show states that never
existed.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager

import structlog

from seckill.audit.comparison_schedule import DEBT_S_MAX, Schedule
from seckill.audit.counter_checks import Reading, judge, units_of
from seckill.audit.document import Teller
from seckill.audit.gate import Absent, GateReader, GateRound
from seckill.audit.invariants import ALL, INVARIANTS, OF_GATE, Invariant
from seckill.audit.lane_shares import Shares, read_rounds
from seckill.audit.ledger import LedgerReader
from seckill.audit.line_checks import LineAudit
from seckill.audit.report import InvariantResult, Notes, Report, Unsure, Verdict
from seckill.audit.second_look import look_again
from seckill.audit.stuck_work import judge_progress
from seckill.domain.public_id import PublicIds
from seckill.errors import GateUnavailable, SeckillError, StartError
from seckill.settings import Settings

log = structlog.get_logger()

PROGRESS_EVERY_S = 5.0


class Auditor:
    def __init__(
        self,
        ledger: LedgerReader,
        gate: GateReader,
        *,
        every_round: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._gate = gate
        self._every_round = every_round
        self._monotonic = monotonic
        self._one_at_a_time = asyncio.Lock()
        self._readings: list[Reading] = []
        self._key: bytes | None = None
        self._gate_away = ""  # why the gate could not be read the last time
        self._schedule = Schedule(ledger, gate, monotonic)
        self._lines = LineAudit(ledger.database, monotonic)
        self._progress = Notes()
        self._progress_at_s = 0.0
        self._reasons: set[tuple[object, ...]] = set()
        self._buyers: dict[tuple[object, ...], int] = {}  # how many buyers an opening of a round had last time

    async def read(self, *, full: bool = False, gently: bool = False, at_once: Collection[int] = frozenset()) -> Report:
        """`full`: compares every order now. `gently`: where nothing looks wrong, compares orders in small steps, a few
        with each reading, except for those of the rounds `at_once`."""
        async with self._one_at_a_time:
            began_s = self._monotonic()
            self._readings = []
            if full:
                self._progress_at_s = 0.0
                self._lines.count_all_now()
            notes = await self._count_twice()
            schedule, readings = self._schedule, self._readings
            suspects = self._suspects(notes)
            if full or (not gently and schedule.is_due()):
                await schedule.at_once(readings)
            else:
                wanted = schedule.is_quickly_done if gently else schedule.is_new
                now = {each.id for each in readings if each.id in suspects or each.id in at_once or wanted(each)}
                await schedule.at_once([each for each in readings if each.id in now], DEBT_S_MAX)
                if gently:
                    await schedule.go_on([each for each in readings if each.id not in now])
            both = Notes()
            both.take(notes)
            both.take(schedule.known(readings))
            return Report(
                at_ms=_at_ms(readings),
                orders_at_ms=schedule.compared_ms(readings),
                took_ms=int((self._monotonic() - began_s) * 1000),
                units=tuple(filter(None, map(units_of, readings))),
                lost=tuple((reading.id, reading.after.sale_id) for reading in readings if reading.lost()),
                results=tuple(_result(invariant, both) for invariant in INVARIANTS),
                passing=frozenset(unsure.reason for unsure in both.unsure if unsure.passes),
                rounds=frozenset(reading.id for reading in readings),
                unsure=frozenset(unsure.round_id for unsure in both.unsure),
            )

    def _suspects(self, notes: Notes) -> set[int | None]:
        """Returns rounds with a new reason for suspicion: their counters, fewer buyers than last time, or more orders
        admitted than the ledger has although none are queued. While orders are queued, the last reason can be neither
        raised nor withdrawn."""
        reasons: dict[tuple[object, ...], int | None] = {finding.key: finding.round_id for finding in notes.findings}
        buyers: dict[tuple[object, ...], int] = {}
        for reading in self._readings:
            gate = reading.gate
            if reading.why_not() is not None or not isinstance(gate, GateRound):
                continue
            opening = (reading.id, reading.opening())
            buyers[opening] = gate.buyers
            if gate.buyers < self._buyers.get(opening, 0):
                reasons["forgotten", opening, gate.buyers] = reading.id
            missing = gate.admitted - reading.after.written - reading.after.buried
            if gate.backlog > 0:
                reasons |= {known: reading.id for known in self._reasons if known[:2] == ("missing", opening)}
            elif missing > 0:
                reasons["missing", opening, missing] = reading.id
        new = {round_id for reason, round_id in reasons.items() if reason not in self._reasons}
        self._reasons, self._buyers = set(reasons), buyers
        return new

    def teller(self) -> Teller:
        """Returns the object that knows the public names of sales and orders. Before the ledger has answered there is
        nothing to name."""
        key = self._key or b""
        return Teller(PublicIds(key, "sale"), PublicIds(key, "order"))

    async def _count_twice(self) -> Notes:
        first = await self._count()
        if not first.findings:
            return first
        await look_again(self._gate)
        second = await self._count()
        second.only(first.keys())
        return second

    async def _count(self) -> Notes:
        notes = Notes()
        try:
            self._readings = await self._take_readings()
            self._schedule.forget_others(self._readings)
            for reading in self._readings:
                judge(reading, notes)
            if self._gate_away and not self._readings:  # otherwise each round reports it
                notes.unsure.append(Unsure(OF_GATE, self._gate_away))
            await self._lines.judge(self._readings, notes)
            await self._count_waiting(notes)
        except SeckillError as error:
            notes.unsure.append(Unsure(ALL, str(error)))
        except Exception as error:  # an unforeseen error is no verdict, and must not end the watch either
            log.exception("the audit could not be made")
            notes.unsure.append(Unsure(ALL, f"the audit could not be made ({error!r})"))
        return notes

    async def _count_waiting(self, notes: Notes) -> None:
        """Counts what waits too long. Not at every reading, since that is a matter of minutes."""
        if self._monotonic() >= self._progress_at_s:
            self._progress = Notes()
            await judge_progress(self._readings, self._ledger, self._progress)
            told = not (self._progress.findings or self._progress.unsure)
            self._progress_at_s = self._monotonic() + (PROGRESS_EVERY_S if told else 0.0)
        notes.take(self._progress)

    async def _take_readings(self) -> list[Reading]:
        if self._key is None:
            self._key = await self._ledger.id_key()
        rounds = await (self._ledger.all_rounds() if self._every_round else self._ledger.recent_rounds())
        gates: Sequence[tuple[GateRound | Absent, Shares | None]]
        self._gate_away = ""
        try:
            await self._gate.look_up()
            standing = self._gate.standing
            await self._check_binding()
            gates = await read_rounds(self._gate, rounds)
            await self._gate.must_stand(standing)
        except GateUnavailable as error:
            self._gate_away = str(error)
            gates = [(Absent(str(error)), None)] * len(rounds)
        after = await self._ledger.rounds([round_.id for round_ in rounds])
        return [
            Reading(before=round_, gate=gate, after=after[round_.id], shares=shares)
            for round_, (gate, shares) in zip(rounds, gates, strict=True)
            if round_.id in after
        ]

    async def _check_binding(self) -> None:
        """Checks that the gate serves this ledger: round 1 of another ledger is not our round 1."""
        bound = await self._gate.ledger()
        if bound and self._key and bound != hashlib.blake2b(self._key, digest_size=16).hexdigest():
            raise GateUnavailable("The gate holds the rounds of another database: check the two addresses.")


def _at_ms(readings: Sequence[Reading]) -> int:
    return readings[0].after.now_ms if readings else int(time.time() * 1000)


def _result(invariant: Invariant, notes: Notes) -> InvariantResult:
    findings = tuple(finding for finding in notes.findings if finding.invariant == invariant.name)
    reasons = tuple(dict.fromkeys(unsure.reason for unsure in notes.unsure if invariant.name in unsure.invariants))
    verdict = Verdict.BROKEN if findings else Verdict.UNKNOWN if reasons else Verdict.HOLDS
    return InvariantResult(
        invariant=invariant,
        verdict=verdict,
        figures=_figures(invariant.name, notes.checked),
        findings=findings,
        reasons=reasons,
    )


_LOOKED_AT = {
    "stock": ("rounds",),
    "items": ("items",),
    "epoch": ("rounds",),
    "counters": ("rounds",),
    "progress": ("rounds",),
    "line": ("lines",),
    "buyers": ("buyers",),
    "limit": ("buyers",),
    "give_back": ("buyers",),
    "lost": ("buyers", "entries"),
    "queue": ("entries",),
}
_ONE = {"rounds": "round", "lines": "line", "items": "item", "buyers": "buyer", "entries": "entry", "orders": "order"}


def _figures(name: str, checked: dict[str, int]) -> str:
    return ", ".join(_counted(checked.get(what, 0), what) for what in _LOOKED_AT.get(name, ("orders",)))


def _counted(many: int, what: str) -> str:
    return f"{many:,} {_ONE[what] if many == 1 else what}"


# By address, see `make_ahead`.
_made_ahead: dict[str, LedgerReader] = {}


def make_ahead(url: str) -> None:
    """For processes that will be copied from this one, as the ledger's own (backends/sql/database_choice.py)."""
    _made_ahead[url] = LedgerReader(url)


@asynccontextmanager
async def open_auditor(settings: Settings, *, every_round: bool = False) -> AsyncIterator[Auditor]:
    if not settings.redis_url or not settings.database_url:
        raise StartError(
            f"There is nothing to audit: no data in {settings.data_dir.absolute()}. Set SECKILL_DATA_DIR to the folder "
            "of `seckill up`, or SECKILL_REDIS_URL and SECKILL_DATABASE_URL."
        )
    ledger = _made_ahead.pop(settings.database_url, None) or LedgerReader(settings.database_url)
    gate = GateReader(settings.redis_url)
    try:
        yield Auditor(ledger, gate, every_round=every_round)
    finally:
        await gate.close()
        await ledger.close()
