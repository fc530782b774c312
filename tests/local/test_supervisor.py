"""The order of a stop. Nothing here looks at a clock: a stop that would have to wait for itself never ends."""

import asyncio

import pytest

from seckill.local.supervisor import Process, Supervisor


class Role(Process):
    """Ends when it is told to stop and all that it waits for have been told, too."""

    def __init__(self, name: str, diary: list[str]) -> None:
        super().__init__(name, [], {})
        self.told = asyncio.Event()
        self.waits_for: list[Role] = []
        self._diary = diary
        self._died = asyncio.Event()

    async def start(self) -> None:
        self._died.clear()
        self._diary.append(f"{self.name} starts")

    def die(self) -> None:
        self._died.set()

    async def wait(self) -> int:
        await self._died.wait()
        return 1

    async def stop(self) -> None:
        self.told.set()
        for other in self.waits_for:
            await other.told.wait()
        self._diary.append(f"{self.name} ends")


async def supervised(diary: list[str]) -> tuple[Supervisor, dict[str, Role]]:
    roles = {name: Role(name, diary) for name in ("valkey", "worker", "keeper", "api 1", "api 2")}
    supervisor = Supervisor()
    await supervisor.add(roles["valkey"])
    await supervisor.add(roles["worker"], roles["keeper"])
    await supervisor.add(roles["api 1"], roles["api 2"])
    assert diary == [f"{name} starts" for name in roles]
    diary.clear()
    return supervisor, roles


async def test_what_was_added_together_is_stopped_together_and_before_what_it_needs() -> None:
    diary: list[str] = []
    supervisor, roles = await supervised(diary)
    for one, other in (("api 1", "api 2"), ("worker", "keeper")):
        roles[one].waits_for, roles[other].waits_for = [roles[other]], [roles[one]]
    await supervisor.stop()
    ends = [line.removesuffix(" ends") for line in diary]
    assert [sorted(ends[:2]), sorted(ends[2:4]), ends[4:]] == [["api 1", "api 2"], ["keeper", "worker"], ["valkey"]]


async def test_who_dies_while_others_stop_is_not_started_again() -> None:
    diary: list[str] = []
    supervisor, roles = await supervised(diary)
    roles["api 1"].waits_for = [roles["worker"]]  # which is told only after it
    stopping = asyncio.create_task(supervisor.stop())
    await roles["api 2"].told.wait()
    roles["api 2"].die()
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert "api 2 starts" not in diary
    assert not roles["worker"].told.is_set(), "a caller in a hurry does not wait for it: it dies with its parent"


async def test_who_dies_is_started_again() -> None:
    diary: list[str] = []
    supervisor, roles = await supervised(diary)
    roles["keeper"].die()
    while "keeper starts" not in diary:
        await asyncio.sleep(0)
    await supervisor.stop()
    assert diary.count("keeper ends") == 1
