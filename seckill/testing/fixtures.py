"""A plugin for pytest with pytest-asyncio: `pytest_plugins = ["seckill.testing.fixtures"]` in a conftest.py."""

from collections.abc import AsyncIterator

import pytest_asyncio

from seckill.testing.memory import MemoryEngine, memory_engine


@pytest_asyncio.fixture
async def seckill_engine() -> AsyncIterator[MemoryEngine]:
    """An engine for this test alone."""
    async with memory_engine() as engine:
        yield engine
