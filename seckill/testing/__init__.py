"""For the tests of shops: the whole engine in memory with a clock that can be moved, and a check of payment providers.

`seckill.testing.fixtures` has the engine as a fixture of pytest.
"""

from seckill.testing.memory import MemoryEngine, memory_engine
from seckill.testing.providers import Breaches, PaymentSide, check_provider

__all__ = ["Breaches", "MemoryEngine", "PaymentSide", "check_provider", "memory_engine"]
