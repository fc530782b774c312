"""Operators hear of a server that is unfit once, and when it is fit again."""

from collections.abc import Collection, Mapping

from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.operations.server_alarm import ServerAlarm


class Gate:
    faults: Mapping[str, str] = {}

    async def watch_servers(self) -> Mapping[str, str]:
        return self.faults

    def full_servers(self) -> Collection[str]:
        return ()

    async def ping(self) -> None: ...


class Heard(Alarm):
    def __init__(self) -> None:
        super().__init__("")
        self.all: list[tuple[str, object]] = []

    async def raise_(self, what: str, facts: Mapping[str, object], *, lasting: bool = False) -> None:
        assert (what, lasting) == (AlarmCause.UNFIT, True)
        self.all.append(("raised", facts["server"]))

    async def resolve(self, what: str, facts: Mapping[str, object], *, ends: str = "") -> None:
        assert ends == AlarmCause.UNFIT
        self.all.append(("resolved", facts["server"]))


async def test_a_server_that_is_unfit_is_told_of_once_and_so_is_its_end() -> None:
    gate, heard = Gate(), Heard()
    watch = ServerAlarm(gate, heard)
    gate.faults = {"a": "no file", "b": ""}
    for _ in range(4):
        await watch.step()
    assert heard.all == [("raised", "a")]
    gate.faults = {"a": "", "b": ""}
    for _ in range(3):
        await watch.step()
    assert heard.all == [("raised", "a"), ("resolved", "a")]


async def test_what_is_over_at_the_next_look_is_not_worth_a_word() -> None:
    gate, heard = Gate(), Heard()
    watch = ServerAlarm(gate, heard)
    for fault in ("reconnects", "", "reconnects", ""):
        gate.faults = {"a": fault}
        await watch.step()
    assert heard.all == []
