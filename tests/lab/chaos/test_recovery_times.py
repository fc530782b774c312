"""A recovery is judged only where nothing else was going on."""

import pytest

from seckill.lab.chaos.crew import Death
from seckill.lab.chaos.evidence import Done, Recovery
from seckill.lab.chaos.recovery_times import is_calm

DRILL = Done(at_s=3.0, ended_s=12.0, kind="takeover", target="worker-1", bit="4 entries taken over")
OWN = [Death(3.1, "worker-1", "worker", 1, -9), Death(10.0, "worker-1", "worker", 2, -9)]
TAKEOVER = Recovery(what="takeover", at_s=10.0, took_s=1.5, within_s=3.0, calm=False)


def fault(at_s: float, ended_s: float) -> Done:
    return Done(at_s=at_s, ended_s=ended_s, kind="pause", target="gate", bit="1 processes stood still")


def test_a_drill_does_not_disturb_itself() -> None:
    assert is_calm(TAKEOVER, [DRILL], OWN)


@pytest.mark.parametrize(("at_s", "ended_s", "calm"), [(9.0, 10.5, False), (11.0, 13.0, False), (12.0, 13.0, True)])
def test_a_fault_at_the_same_time_does(at_s: float, ended_s: float, calm: bool) -> None:
    assert is_calm(TAKEOVER, [DRILL, fault(at_s, ended_s)], OWN) is calm


@pytest.mark.parametrize(("at_s", "calm"), [(2.0, True), (8.0, False), (10.8, False), (11.9, True)])
def test_so_does_the_death_of_another_who_could_have_helped(at_s: float, calm: bool) -> None:
    deaths = [*OWN, Death(at_s, "worker-2", "worker", 3, -9)]
    assert is_calm(TAKEOVER, [DRILL], deaths) is calm
