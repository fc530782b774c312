"""Failpoints: what arms them, what they do, and that nothing is there when none is armed."""

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import seckill
from seckill.bootstrap.boundary_failpoints import NAMES, watched
from seckill.errors import GateUnavailable, GateUnclear, LedgerUnavailable, SettingsError, TransportUnavailable
from seckill.failpoints import STEPS, arm, armed, reached


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    arm("")


class Port:
    """Any port: counts the calls that came through."""

    name = "sandbox"

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.found: list[int] = []

    async def admit(self, *_: object) -> str:
        self.calls.append("admit")
        return "answer"

    async def record(self, *_: object) -> str:
        self.calls.append("record")
        return "recorded"

    async def read(self, count: int, wait_s: float) -> list[int]:
        self.calls.append(f"read {count} {wait_s}")
        return self.found

    async def capture(self) -> str:
        self.calls.append("capture")
        return "captured"

    async def give_up(self, *_: object) -> None:
        self.calls.append("give_up")

    async def due(self, wait_s: float) -> set[str]:
        self.calls.append(f"due {wait_s}")
        return {"expiry"}

    async def close(self) -> None:
        self.calls.append("close")

    @property
    def payments(self) -> "Port":
        return self


def watching(port: Port, role: str, kind: str) -> Any:
    return watched(port, role, kind)


@pytest.mark.parametrize("port", ["gate.admit", "transport.settle", "ledger.record", "ledger.capture"])
def test_boundaries_have_names(port: str) -> None:
    assert {name.split(".", 1)[1] for name in NAMES if f".{port}." in name} >= {f"{port}.before", f"{port}.after"}


def test_every_role_has_boundaries() -> None:
    assert {name.split(".")[0] for name in NAMES} == {"api", "worker", "relay", "keeper"}
    assert "relay.courier.post.after" in NAMES
    assert not NAMES & STEPS


def test_nothing_is_there_when_none_is_armed() -> None:
    port = Port()
    assert not armed()
    assert watched(port, "api", "gate") is port


def test_tools_have_no_failpoints() -> None:
    arm("api.gate.admit.before=raise", NAMES)
    port = Port()
    assert watched(port, None, "gate") is port


async def test_raise_leaves_the_call_out() -> None:
    arm("api.gate.admit.before=raise", NAMES)
    port = Port()
    with pytest.raises(GateUnavailable):
        await watching(port, "api", "gate").admit()
    assert port.calls == []


@pytest.mark.parametrize(
    ("kind", "method", "error"),
    [("gate", "admit", GateUnclear), ("ledger", "record", LedgerUnavailable), ("ledger", "capture", LedgerUnavailable)],
)
async def test_drop_makes_the_call_and_loses_the_answer(kind: str, method: str, error: type[Exception]) -> None:
    arm(f"api.{kind}.{method}.after=drop", NAMES)
    port = Port()
    guarded = watching(port, "api", kind)
    with pytest.raises(error):
        await getattr(guarded.payments if method == "capture" else guarded, method)()
    assert port.calls == [method]


async def test_stall_goes_on_later(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("seckill.bootstrap.boundary_failpoints.asyncio.sleep", sleep)
    arm("worker.transport.read.before=stall@2.5", NAMES)
    port = Port()
    port.found = [1]
    assert await watching(port, "worker", "transport").read(5, wait_s=0.1) == [1]
    assert (slept, port.calls) == ([2.5], ["read 5 0.1"])


async def test_who_finds_nothing_is_not_in_the_window() -> None:
    arm("worker.transport.read.after=drop", NAMES)
    port = Port()
    worker = watching(port, "worker", "transport")
    assert await worker.read(1, 0) == []
    port.found = [7]
    with pytest.raises(TransportUnavailable):
        await worker.read(1, 0)


async def test_what_never_raises_loses_the_call() -> None:
    arm("keeper.delays.give_up.before=raise,keeper.delays.due.before=raise", NAMES)
    port = Port()
    delays = watching(port, "keeper", "delays")
    await delays.give_up("payload", "reason")
    assert await delays.due(1) == set()
    assert port.calls == []


async def test_the_rest_passes_through() -> None:
    arm("api.provider.refund.before=raise", NAMES)
    port = Port()
    provider = watching(port, "api", "provider")
    assert provider.name == "sandbox"
    await provider.close()
    assert port.calls == ["close"]


async def test_only_with_the_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    arm("api.gate.admit.before=raise:0.25", NAMES)
    port = Port()
    gate = watching(port, "api", "gate")
    monkeypatch.setattr(random, "random", lambda: 0.25)
    assert await gate.admit() == "answer"
    monkeypatch.setattr(random, "random", lambda: 0.2499)
    with pytest.raises(GateUnavailable):
        await gate.admit()


def test_each_firing_is_announced(capfd: pytest.CaptureFixture[str]) -> None:
    arm("ledger.record.inside=stall@0")
    reached("ledger.record.inside")
    assert capfd.readouterr().err == "failpoint ledger.record.inside: stall\n"


def test_kill_is_at_once() -> None:
    code = "from seckill.failpoints import *; n = 'ledger.end.inside'; arm(n + '=kill'); reached(n); print('alive')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-9, "", "failpoint ledger.end.inside: kill\n")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("api.gate.admit.before", "use kill, stall@SECONDS"),
        ("api.gate.admit.before=drop", "use kill, stall@SECONDS"),
        ("api.gate.admit.after=kill:2", "use kill, stall@SECONDS"),
        ("api.gate.admit.after=kill:x", "use kill, stall@SECONDS"),
        ("api.gate.admit.after=stall", "use kill, stall@SECONDS"),
        ("api.gate.admit.after=stall@-1", "use kill, stall@SECONDS"),
        ("ledger.end.inside=raise", "use ledger.end.inside=kill"),
        ("api.gate.nothing.after=kill", "knows no 'api.gate.nothing.after'"),
        ("kill", "knows no 'kill'"),
    ],
)
def test_mistakes_are_named(spec: str, said: str) -> None:
    with pytest.raises(SettingsError, match="SECKILL_FAILPOINTS") as refused:
        arm(spec, NAMES)
    assert said in str(refused.value)
    assert not armed()


def test_every_step_that_is_reached_can_be_armed() -> None:
    """Every step that can be armed is reached somewhere, too."""
    named = re.compile(r'\breached\("([^"]+)"\)')
    package = Path(seckill.__file__).parent
    found = {name for path in package.rglob("*.py") for name in named.findall(path.read_text())}
    assert found == STEPS
