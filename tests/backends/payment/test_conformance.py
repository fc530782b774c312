"""A provider's promises, on all that ship: forged, altered and repeated callbacks, wrong amounts and orders, refunds
asked for twice and in parts, and a payment side that is away, slow, loses its answer, or says no."""

import pytest

from seckill.payment import PaymentProvider
from seckill.testing import check_provider
from tests.backends.payment.conftest import Side


@pytest.mark.usefixtures("short_deadlines")
async def test_it_keeps_what_a_provider_promises(provider: PaymentProvider, side: Side) -> None:
    await check_provider(provider, side=side)
    assert side.refunds() > 2
