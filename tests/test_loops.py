import asyncio

import pytest
from structlog.testing import capture_logs

from seckill import loops
from seckill.errors import LedgerUnavailable
from seckill.loops import Stop, repeat

FAILED = "a step of the loop failed"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "BACKOFF_S_MIN", 0.0)
    monkeypatch.setattr(loops, "BACKOFF_S_MAX", 0.0)


async def log_of(*results: Exception | None) -> list[str]:
    """What a loop logs whose step has these results, one after the other."""
    stop, left = Stop(), list(results)

    async def step() -> None:
        await asyncio.sleep(0)
        result = left.pop(0)
        if not left:
            stop.set()
        if result is not None:
            raise result

    with capture_logs() as logged:
        await repeat("trial", step, stop)
    return [line["event"] for line in logged]


async def test_an_error_that_lasts_is_logged_once_and_so_is_its_end() -> None:
    """A hundred lines of traceback for each try of each loop fill a disk, and hide what else is logged."""
    missing = [ValueError("no table") for _ in range(50)]
    assert await log_of(*missing, None) == [FAILED, "going on"]


async def test_another_error_and_another_outage_are_logged() -> None:
    told = await log_of(ValueError("a"), ValueError("a"), ValueError("b"), KeyError("b"), None, KeyError("b"))
    assert told == [FAILED, FAILED, FAILED, "going on", FAILED]


async def test_an_error_that_lasts_for_long_is_logged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "TOLD_AGAIN_S", 0.0)
    assert await log_of(*[ValueError("no table") for _ in range(3)]) == [FAILED] * 3


async def test_what_is_away_is_logged_once_and_so_is_its_end() -> None:
    assert await log_of(*[LedgerUnavailable(f"{n}") for n in range(9)], None) == ["waiting", "going on"]
