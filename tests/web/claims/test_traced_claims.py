"""Operators decide which claims are traced, and nobody else does."""

from ipaddress import ip_network
from typing import Any, cast

import pytest

from seckill.engine.traces.sampling import Sampling
from seckill.web.claims.traced_claims import TracedClaims
from seckill.web.requests.client_address import ClientAddresses

ASKED = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PROXY, STRANGER = "10.0.0.7", "198.51.100.1"


def claims(ratio: float) -> TracedClaims:
    addresses = ClientAddresses([ip_network("10.0.0.0/8")])
    return TracedClaims(cast(Any, None), cast(Any, None), Sampling(ratio, 1_000_000), addresses)


@pytest.mark.parametrize("peer", [PROXY, "127.0.0.1", "::1", ""])
def test_what_is_ours_is_believed(peer: str) -> None:
    assert claims(0.0).choose(peer, [ASKED]) == ASKED.decode()
    assert claims(1.0).choose(peer, [ASKED[:-1] + b"0"]) is None


def test_a_stranger_cannot_have_a_claim_traced_or_put_it_into_another_trace() -> None:
    assert claims(0.0).choose(STRANGER, [ASKED]) is None
    assert claims(1.0).choose(STRANGER, [ASKED]) == ""
    assert claims(1.0).choose(STRANGER, [ASKED[:-1] + b"0"]) == "", "nor keep one from being chosen"


def test_who_says_it_twice_or_badly_has_said_nothing() -> None:
    for said in ([], [ASKED, ASKED], [b"nonsense"], [b""]):
        assert claims(0.0).choose(PROXY, said) is None
        assert claims(1.0).choose(PROXY, said) == ""
