"""The trace of a claim travels with its order, in a place where an earlier version does not look."""

import msgspec

from seckill.domain.admission import Claim
from seckill.domain.trace import Trace
from seckill.ports.gate import Gate
from tests.backends.gate.conftest import OpenedRound
from tests.backends.gate.test_claim_metadata import entries
from tests.fixtures.backends import Backend
from tests.making import make_round

TRACE = str(Trace("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"))


async def test_each_entry_has_what_its_claim_is_traced_under(backend: Backend, gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=3))
    claims = [Claim("ann", 1, "k1"), Claim("bob", 1, "k2", trace=TRACE), Claim("ann", 9, trace=TRACE), Claim("cid", 1)]
    await gate.admit(round_.ref, claims)
    found = await entries(backend, round_.ref)
    assert [admission.trace for _, admission in found] == ["", TRACE, ""]
    # Its text is that of any other: version 0.2.0 refuses one with a field that it does not know.
    assert len({frozenset(msgspec.json.decode(payload)) for payload, _ in found}) == 1
