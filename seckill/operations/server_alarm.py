"""Alerts operators when a server of the gate is not configured as it must be, so that no buyer is admitted there."""

from collections.abc import Mapping

from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.ports.gate import ServerGate
from seckill.telemetry import SERVERS_UNFIT


class ServerAlarm:
    def __init__(self, gate: ServerGate, alarm: Alarm) -> None:
        self._gate = gate
        self._alarm = alarm
        self._before: Mapping[str, str] = {}
        self._told: Mapping[str, str] = {}
        self._open: set[str] = set()  # servers whose alarm is not resolved

    async def step(self) -> int:
        """Returns how many servers are unfit. Operators are told once about each, and again when it is over. They are
        not told about trouble that is over at the next look, such as a replica that reconnects."""
        faults = {server: fault for server, fault in (await self._gate.watch_servers()).items() if fault}
        SERVERS_UNFIT.set(len(faults))
        lasting = {server: fault for server, fault in faults.items() if self._before.get(server) == fault}
        new = {server: fault for server, fault in lasting.items() if self._told.get(server) != fault}
        self._before = faults
        self._told = {server: fault for server, fault in faults.items() if server in lasting}
        for server, fault in new.items():
            await self._alarm.raise_(AlarmCause.UNFIT, {"server": server, "reason": fault}, lasting=True)
        for server in self._open - faults.keys():
            await self._alarm.resolve(
                "a server of the gate is as it must be again", {"server": server}, ends=AlarmCause.UNFIT
            )
        self._open = (self._open & faults.keys()) | new.keys()
        return len(faults)
