"""Goes after the windows that chance has missed, so that a slow machine cannot make a run inconclusive."""

import asyncio
from collections.abc import Callable, Sequence

from seckill.failpoints import VARIABLE
from seckill.lab.chaos.crew import Crew
from seckill.lab.chaos.failpoint_plan import FaultWindow

POLL_S = 0.2
LIKELIER = 10  # times
# How long each window is tried in total; the process has to start and reach the point.
EACH_S = 30.0
INSIST_S_MAX = 300.0


async def insist(
    crew: Crew, windows: Sequence[FaultWindow], required: Sequence[str], clock: Callable[[], float]
) -> None:
    """Tries one missing window of each role at a time, on one process and then on the other."""
    give_up_at_s = clock() + INSIST_S_MAX
    turn = 0
    while (missing := _missing(crew, windows, required)) and clock() < give_up_at_s:
        turn += 1
        sought = list({window.role: window for window in reversed(missing)}.values())
        for window in sought:
            members = crew.members(window.role)
            member = members[turn % len(members)]
            crew.prepare(member.name, {VARIABLE: str(window.likelier(LIKELIER))})
            crew.kill(member.name)
        until_s = clock() + EACH_S
        while clock() < until_s and set(sought) & set(_missing(crew, windows, required)):  # noqa: ASYNC110 (a log)
            await asyncio.sleep(POLL_S)


def _missing(crew: Crew, windows: Sequence[FaultWindow], required: Sequence[str]) -> list[FaultWindow]:
    fired = crew.fired()
    return [window for window in windows if window.name in required and not fired[window.name]]
