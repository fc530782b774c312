"""A shop's metadata about a claim travels with its order, and changes nothing for the others."""

import msgspec

from seckill.domain.admission import Admission, Claim
from seckill.domain.outcome import Outcome
from seckill.domain.sale import RoundRef
from seckill.ports.gate import Gate
from seckill.ports.queue_entry import read_entry, write_entry
from tests.backends.gate.conftest import OpenedRound, outcomes
from tests.fixtures.backends import Backend
from tests.making import make_round
from tests.patience import PATIENCE_S

SAID = '{"note":"带 \\"引号\\" \\\\ /","size":"L"}'


async def entries(backend: Backend, ref: RoundRef) -> list[tuple[bytes, Admission]]:
    transport = backend.transport()
    await transport.prepare([ref.lane])
    found = [(each.payload, each.admission) for each in await transport.read(10, PATIENCE_S)]
    return [(payload, admission) for payload, admission in found if admission is not None]


async def test_each_entry_has_what_its_claim_said(backend: Backend, gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=3, limit_per_buyer=2))
    claims = [
        Claim("zoe", 3, "", '{"z":1}'),
        Claim("ann", 1, "k1"),
        Claim("bob", 1, "k2", SAID),
        Claim("ann", 1, "k3", "{}"),
        Claim("eve", 1, "", SAID),
    ]
    assert await outcomes(gate, round_.ref, claims) == [
        Outcome.LIMIT_REACHED,
        *[Outcome.ADMITTED] * 3,
        Outcome.SOLD_OUT,
    ]
    found = await entries(backend, round_.ref)
    assert [admission.metadata for _, admission in found] == ["", SAID, "{}"]
    assert ["metadata" in msgspec.json.decode(payload) for payload, _ in found] == [False, True, True]


async def test_a_repeat_with_other_metadata_is_the_same_order(
    backend: Backend, gate: Gate, opened: OpenedRound
) -> None:
    round_ = await opened(make_round(total=3))
    first = (await gate.admit(round_.ref, [Claim("ann", 1, "k1", SAID)])).answers[0]
    for said in ("", "{}", SAID):
        again = (await gate.admit(round_.ref, [Claim("ann", 1, "k1", said)])).answers[0]
        assert (again.outcome, again.holdings) == (Outcome.REPEATED, first.holdings)
    assert [admission.metadata for _, admission in await entries(backend, round_.ref)] == [SAID]


async def test_every_gate_writes_the_entry_that_python_writes(
    backend: Backend, gate: Gate, opened: OpenedRound
) -> None:
    round_ = await opened(make_round(total=3))
    await gate.admit(round_.ref, [Claim("ann", 1, "k1"), Claim("bob", 1, "k2", SAID)])
    for payload, admission in await entries(backend, round_.ref):
        assert msgspec.json.decode(payload) == msgspec.json.decode(write_entry(admission))


def test_what_is_no_object_is_not_taken_for_metadata() -> None:
    """An order with such metadata could not be shown."""
    fields = '{"v":1,"round":1,"epoch":1,"lane":0,"seconds":1,"at_ms":1,"counter":1,"quantity":1,"slot":1,"user":"a",'
    for said in ("[]", "nonsense", "7"):
        entry = f'{fields}"request":"","metadata":{msgspec.json.encode(said).decode()}}}'
        assert read_entry(0, "1-1", entry.encode()).admission is None
