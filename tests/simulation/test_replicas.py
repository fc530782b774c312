"""The simulation must say the truth about a gate with a replica, or its verdicts are worth nothing."""

from dataclasses import replace

from seckill.backends.memory.store import MemoryStore
from seckill.domain.admission import Claim
from seckill.domain.outcome import Outcome
from tests.making import make_round
from tests.simulation.loop import VirtualLoop
from tests.simulation.replicas import Replicated, ReplicatedGate

ARRIVES_AFTER_S = 0.3


async def at_once(_: object) -> None:
    """Nothing happens on the way."""


def test_an_admission_is_looked_at_when_it_happens_and_not_when_the_replica_has_it() -> None:
    """A round may end while a claim waits for the replica: looked at afterwards, it would be taken for a late one."""
    loop = VirtualLoop()
    round_ = make_round()
    store = MemoryStore(lambda: round_.begins_ms)
    seen: list[tuple[int, float]] = []

    def look() -> None:
        held = store.contents.rounds.get(round_.ref)
        seen.append((0 if held is None else held.admitted, loop.time()))

    server = Replicated(store, look, loop.call_later, lambda: ARRIVES_AFTER_S)
    gate = ReplicatedGate(store, server, backlog_max=10, strict=True, travel=at_once)

    async def buy() -> Outcome:
        opening = await gate.open_round(round_)
        await gate.update_round(replace(round_, opened_ms=opening.opened_ms))
        reply = await gate.admit(round_.ref, [Claim("ann", 1, "k")])
        return reply.answers[0].outcome

    try:
        assert loop.run_until_complete(buy()) is Outcome.ADMITTED
        assert loop.time() == ARRIVES_AFTER_S
    finally:
        loop.close()
    assert seen == [(1, 0.0)]
