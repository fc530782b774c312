"""The engine's clocks, and its waits made shorter, so that a run is over after a few seconds of made-up time."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from unittest.mock import patch

from seckill import admission, catalogue, fulfilment, keeper, loops, payments, rebuilding
from seckill.ledgers import edge
from tests.simulation import database
from tests.simulation.loop import VirtualLoop

# Module, name, seconds. What is looked at often and mostly in vain is looked at less often: each look costs.
_WAITS = [
    (keeper, "EVERY_S", 1.3),
    (keeper, "RELAY_EVERY_S", 0.8),
    (keeper, "LATE_EVERY_S", 1.1),
    (keeper, "EXPIRE_EVERY_S", 1.1),
    (keeper, "RETRY_EVERY_S", 1.2),
    (keeper, "REFUND_EVERY_S", 1.5),
    (payments, "LEASE_S", 1.5),
    (payments, "REFUND_LEASE_S", 1.5),
    (payments, "REFUND_RETRY_S_MIN", 0.3),
    (payments, "REFUND_RETRY_S_MAX", 1.0),
    (rebuilding, "DRAIN_S_MAX", 1.5),
    (edge, "WRITE_WITHIN_S", 4.0),
    (edge, "READ_WITHIN_S", 2.0),
    (database, "LOCK_WAIT_S", 3.0),
]


@contextmanager
def hurried(loop: VirtualLoop, seed: int, now_ms: int) -> Iterator[None]:
    clock = SimpleNamespace(monotonic=loop.time, time=lambda: now_ms / 1000 + loop.time())
    before = random.getstate()
    random.seed(seed)  # the jitter of the engine's loops
    try:
        with ExitStack() as stack:
            for module in (admission, catalogue, fulfilment, loops):
                stack.enter_context(patch.object(module, "time", clock))
            for module, name, seconds in _WAITS:
                stack.enter_context(patch.object(module, name, seconds))
            yield
    finally:
        random.setstate(before)
