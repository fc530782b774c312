"""Whether a role is well: told by a thread that still answers when the event loop does not."""

import asyncio
import time

import pytest
from prometheus_client import REGISTRY

from seckill import loops
from seckill.engine.readiness import Parts, Readiness, StoreHealth
from seckill.lab.servers.ports import free_port
from seckill.loops import Stop, longest_step, repeat
from seckill.operations import role_health as module
from seckill.operations.metrics_port import metrics_port
from seckill.operations.role_health import Vitals, can_sell
from seckill.settings import Settings
from tests.operations.test_metrics_port import get
from tests.patience import PATIENCE_S


class Stores(Readiness):
    """Stores that are as the test says."""

    def __init__(self, gate: StoreHealth = StoreHealth.OK, ledger: StoreHealth = StoreHealth.OK) -> None:
        self.parts = Parts(gate=gate, ledger=ledger)
        self.looks = 0
        self.looked = asyncio.Event()

    async def look(self) -> Parts:
        self.looks += 1
        self.looked.set()
        return self.parts

    async def seen(self) -> None:
        """Waits until a look that began after now is over."""
        now = self.looks
        while self.looks < now + 2:
            self.looked.clear()
            await asyncio.wait_for(self.looked.wait(), PATIENCE_S)


async def asked(port: int, path: str) -> tuple[int, str]:
    return await asyncio.to_thread(get, port, path)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(module, "BEAT_EVERY_S", 0.01)
    monkeypatch.setattr(loops, "_running", {})  # whatever other tests have left behind


async def test_a_worker_is_ready_when_gate_and_ledger_answer() -> None:
    stores, port, vitals = Stores(), free_port(), Vitals("worker")
    with metrics_port(Settings(metrics_port=port), vitals):
        async with vitals.beating():
            assert await asked(port, "/readyz") == (503, '{"status":"starting"}\n')
            assert await asked(port, "/healthz") == (200, '{"status":"ok"}\n')
            async with vitals.watching(stores):
                await stores.seen()
                assert await asked(port, "/readyz") == (200, '{"status":"ready","gate":"ok","ledger":"ok"}\n')
                stores.parts = Parts(gate=StoreHealth.OK, ledger=StoreHealth.AWAY)
                await stores.seen()
                assert await asked(port, "/readyz") == (503, '{"status":"not_ready","gate":"ok","ledger":"away"}\n')
                up = {
                    store: REGISTRY.get_sample_value("seckill_store_up", {"role": "worker", "store": store})
                    for store in ("gate", "ledger")
                }
                assert up == {"gate": 1, "ledger": 0}
                stores.parts = Parts(gate=StoreHealth.AWAY, ledger=StoreHealth.OK)
                await stores.seen()
                assert (await asked(port, "/readyz"))[0] == 503
                assert (await asked(port, "/healthz"))[0] == 200, "to start it again would not help"
            assert (await asked(port, "/readyz"))[0] == 503, "it is about to stop"


@pytest.mark.parametrize(
    ("gate", "ledger", "sells", "writes"),
    [
        (StoreHealth.OK, StoreHealth.AWAY, True, False),
        (StoreHealth.UNFIT, StoreHealth.OK, False, True),
        (StoreHealth.PARTLY_UNFIT, StoreHealth.OK, True, True),
        (StoreHealth.AWAY, StoreHealth.OK, False, False),
    ],
)
def test_which_stores_are_enough_to_sell_and_to_write(
    gate: StoreHealth, ledger: StoreHealth, sells: bool, writes: bool
) -> None:
    parts = Parts(gate=gate, ledger=ledger)
    assert (can_sell(parts), module.can_write(parts)) == (sells, writes)


async def test_a_loop_that_hangs_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop stands still in here while a request comes in."""
    monkeypatch.setattr(module, "HUNG_AFTER_S", 0.2)
    stores, port, vitals = Stores(), free_port(), Vitals("worker")
    with metrics_port(Settings(metrics_port=port), vitals):
        async with vitals.beating(), vitals.watching(stores):
            await stores.seen()
            time.sleep(0.5)
            for path in ("/healthz", "/readyz"):
                status, text = get(port, path)
                assert (status, '"status":"hung"' in text) == (503, True)
            while (await asked(port, "/healthz"))[0] != 200:
                await asyncio.sleep(0.01)
            assert REGISTRY.get_sample_value("seckill_processes", {"role": "worker"}) == 1
    assert REGISTRY.get_sample_value("seckill_processes", {"role": "worker"}) == 0


async def test_a_step_that_never_ends_is_not_healthy_but_listening_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STUCK_AFTER_S", 0.05)
    vitals, stop, never = Vitals("keeper"), Stop(), asyncio.Event()
    listening = asyncio.create_task(repeat("listening", never.wait, stop, lasting=True))
    async with vitals.beating():
        await asyncio.sleep(0.1)
        assert vitals.health().good
        stuck = asyncio.create_task(repeat("refunds", never.wait, stop))
        while vitals.health().good:
            await asyncio.sleep(0.01)
        assert (vitals.health().status, vitals.health().loop) == ("stuck", "refunds")
        for task in (stuck, listening):
            task.cancel()
        await asyncio.gather(stuck, listening, return_exceptions=True)
        assert vitals.health().good
    assert longest_step()[0] == ""


async def test_a_step_that_says_that_it_gets_on_does_not_hang() -> None:
    """A worker that waits for its database must not be started again: that would not help."""
    stop, heard = Stop(), []

    async def step() -> None:
        ((number, (name, began_s)),) = loops._running.items()
        loops._running[number] = name, began_s - 1000
        heard.append(longest_step()[1])
        loops.gets_on()
        heard.append(longest_step()[1])
        stop.set()

    await repeat("worker", step, stop)
    before_s, after_s = heard
    assert before_s > 999 > after_s
    loops.gets_on()  # outside of any step


async def test_a_look_from_long_ago_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stores were well, but have not been checked since."""
    now_s = 0.0
    stores, vitals = Stores(), Vitals("worker", monotonic=lambda: now_s)
    async with vitals.watching(stores):
        await stores.seen()
        assert vitals.readiness().good
        monkeypatch.setattr(stores, "look", asyncio.Event().wait)
        await asyncio.sleep(0.05)
        now_s = module.SEEN_WITHIN_S + 0.1
        assert not vitals.readiness().good
