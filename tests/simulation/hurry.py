"""The engine's clocks, and its waits made shorter, so that a run is over after a few seconds of made-up time."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from unittest.mock import patch

from seckill import loops
from seckill.backends.sql import line_rows, transactions
from seckill.engine import keeper
from seckill.engine import sale_cache as sale_cache
from seckill.engine.claims import admission_desk
from seckill.engine.line import serving
from seckill.engine.money import late_payments, payments, refunds
from seckill.engine.orders import worker as fulfilment
from seckill.engine.rounds import failover, rebuild, retirement
from tests.simulation import database
from tests.simulation.loop import VirtualLoop

# Module, name, seconds. What is looked at often and mostly in vain is looked at less often: each look costs.
_WAITS = [
    (keeper, "EVERY_S", 1.3),
    (keeper, "PASS_ON_EVERY_S", 0.8),
    (keeper, "LATE_EVERY_S", 1.1),
    (keeper, "EXPIRE_EVERY_S", 1.1),
    (keeper, "RETRY_EVERY_S", 1.2),
    (keeper, "REFUND_EVERY_S", 1.5),
    (keeper, "RETIRE_EVERY_S", 1.7),
    (keeper, "DRAW_EVERY_S", 0.9),
    (keeper, "SERVE_EVERY_S", 0.6),
    (serving, "LEASE_S", 1.5),
    (failover, "AGAIN_AFTER_S", 3.0),
    (retirement, "RETIRE_AFTER_MS", 6000),  # longer than a keeper that stood still is wrong about the time
    (retirement, "HEARD_AFTER_MS", 8000),  # longer than any process stands still, with what it knew before
    (payments, "LEASE_S", 1.5),
    (late_payments, "LEASE_S", 1.5),
    (refunds, "LEASE_S", 1.5),
    (refunds, "RETRY_S_MIN", 0.3),
    (refunds, "RETRY_S_MAX", 1.0),
    (rebuild, "DRAIN_S_MAX", 1.5),
    (transactions, "WRITE_WITHIN_S", 4.0),
    (transactions, "READ_WITHIN_S", 2.0),
    (database, "LOCK_WAIT_S", 3.0),
]


@contextmanager
def hurried(loop: VirtualLoop, seed: int, now_ms: int) -> Iterator[None]:
    clock = SimpleNamespace(monotonic=loop.time, time=lambda: now_ms / 1000 + loop.time())
    chance = random.Random(f"{seed} draws")
    drawn = SimpleNamespace(token_hex=lambda count: chance.randbytes(count).hex())
    before = random.getstate()
    random.seed(seed)  # the jitter of the engine's loops
    try:
        with ExitStack() as stack:
            for module in (admission_desk, sale_cache, fulfilment, loops):
                stack.enter_context(patch.object(module, "time", clock))
            stack.enter_context(patch.object(line_rows, "secrets", drawn))
            for module, name, seconds in _WAITS:
                stack.enter_context(patch.object(module, name, seconds))
            yield
    finally:
        random.setstate(before)
