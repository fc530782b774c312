"""Claims are let in as fast as orders are written where a sale does not fit into the queue, and as they come where it
does."""

from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from seckill.engine.claims.writing_pace import FEW, WAIT_S, LanePace, WritingPace, call_max
from seckill.ports.transport import LaneFlow

LANE = 3
ROOM = 100_000
LAG_S = 1.0
TICK_S = 0.01
LOOK_TICKS = 25


@dataclass
class World:
    """Nodes with people at their doors, one lane, and a ledger that writes in batches."""

    written_per_s: float
    asked_per_s: list[float]  # of each node
    on_sale: int = 10_000_000
    lag_s: float = LAG_S
    now_s: float = 100.0
    admitted: int = 0
    waiting: int = 0
    refused: int = 0
    worst: int = 0
    nodes: list["Node"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nodes = [Node(self, asked) for asked in self.asked_per_s]

    async def flow(self, lanes: Collection[int]) -> dict[int, LaneFlow]:
        return {lane: LaneFlow(self.admitted, self.waiting) for lane in lanes}

    async def pass_time(self, seconds: float) -> None:
        self.worst = 0
        for node in self.nodes:
            node.admitted = 0
        for tick in range(round(seconds / TICK_S)):
            self.now_s += TICK_S
            for place, node in enumerate(self.nodes):
                node.serve()
                if (tick + 7 * place) % LOOK_TICKS == 0:
                    await node.pace.look({LANE: self.on_sale - self.admitted})
            if tick % 10 == 9:
                self.waiting -= min(self.waiting, round(10 * TICK_S * self.written_per_s))
            self.worst = max(self.worst, self.waiting)


class Node:
    def __init__(self, world: World, asked_per_s: float) -> None:
        self.world = world
        self.asked_per_s = asked_per_s
        self.pace = WritingPace(world, world.lag_s, ROOM, lambda: world.now_s)
        self.lane = self.pace.of(LANE)
        self.free_s = 0.0
        self.admitted = 0

    def serve(self) -> None:
        """People come again until they are served, so there are never fewer at the door."""
        if self.world.now_s < self.free_s:
            return
        asked = round(self.asked_per_s * TICK_S)
        if self.lane.rate is not None:
            asked = min(asked, call_max(self.lane.rate, asked))
        admitted = min(asked, ROOM - self.world.waiting, self.world.on_sale - self.world.admitted)
        self.world.refused += asked - admitted
        self.world.admitted += admitted
        self.world.waiting += admitted
        self.admitted += admitted
        self.free_s = self.world.now_s + self.lane.after(admitted)


@pytest.mark.parametrize("written_per_s", [500, 3_000, 12_000])
@pytest.mark.parametrize("nodes", [1, 2, 5])
async def test_what_is_let_in_is_what_is_written(written_per_s: int, nodes: int) -> None:
    world = World(written_per_s, [20_000 / nodes] * nodes)
    await world.pass_time(120)
    before = world.admitted
    await world.pass_time(60)
    assert world.worst <= max(2 * LAG_S * written_per_s, 2 * FEW)
    assert world.refused == 0
    assert (world.admitted - before) / 60 == pytest.approx(written_per_s, rel=0.05), "nor is the ledger left idle"


async def test_without_it_people_are_refused() -> None:
    """The control."""
    world = World(3_000, [20_000], lag_s=0)
    await world.pass_time(30)
    assert world.worst == ROOM
    assert world.refused > 0


async def test_a_sale_that_fits_into_the_queue_is_never_slowed_down() -> None:
    world = World(300, [20_000], on_sale=ROOM)
    await world.pass_time(5)
    assert world.admitted == ROOM
    assert world.nodes[0].lane.rate is None


async def test_the_last_of_a_large_sale_go_at_once() -> None:
    world = World(3_000, [20_000], on_sale=130_000)
    await world.pass_time(20)
    assert world.admitted == 130_000, "at the ledger's pace it would have been half of them"


async def test_a_node_that_people_turn_to_later_gets_its_share() -> None:
    world = World(6_000, [20_000, 100])
    await world.pass_time(30)
    world.nodes[1].asked_per_s = 20_000
    await world.pass_time(30)
    await world.pass_time(60)
    first, second = (node.admitted for node in world.nodes)
    assert second / first == pytest.approx(1.0, abs=0.4)


@pytest.mark.parametrize("nodes", [1, 4])
async def test_a_ledger_that_stood_still_for_a_moment_is_used_again_at_once(nodes: int) -> None:
    world = World(12_000, [20_000 / nodes] * nodes)
    await world.pass_time(10)
    world.written_per_s = 300
    await world.pass_time(1.5)
    world.written_per_s = 12_000
    await world.pass_time(3)
    before = world.admitted
    await world.pass_time(5)
    assert (world.admitted - before) / 5 > 11_000


async def test_while_nothing_is_written_the_queue_takes_them() -> None:
    world = World(3_000, [1_000])
    await world.pass_time(5)
    world.written_per_s = 0
    await world.pass_time(30)
    assert world.nodes[0].lane.rate is None
    assert world.waiting > 25_000


async def test_a_queue_that_has_piled_up_is_worked_off() -> None:
    world = World(0, [3_000])
    await world.pass_time(20)
    piled_up = world.waiting
    world.written_per_s = 4_000
    await world.pass_time(60)
    assert piled_up > 50_000
    assert world.waiting <= 2 * LAG_S * 4_000
    assert world.refused == 0


async def test_a_gate_that_has_forgotten_is_seen_anew() -> None:
    world = World(3_000, [20_000])
    await world.pass_time(10)
    world.admitted = world.waiting = 0
    await world.pass_time(30)
    assert world.worst <= 2 * LAG_S * 3_000


async def test_who_sends_nothing_asks_nothing() -> None:
    class Nobody:
        async def flow(self, lanes: Collection[int]) -> dict[int, LaneFlow]:
            raise AssertionError(lanes)

    pace = WritingPace(Nobody(), LAG_S, ROOM)
    pace.of(LANE)
    await pace.look({LANE: 1_000_000})
    await pace.look({})


def test_calls_of_several_rounds_share_the_lanes_pace() -> None:
    now_s = 5.0
    lane = LanePace(lambda: now_s)
    assert lane.after(100) == 0
    lane.rate = 50.0
    assert lane.after(50) == pytest.approx(1.0)
    assert lane.after(25) == pytest.approx(1.5)
    assert lane.after(0) == pytest.approx(1.5)


def test_no_call_is_held_up_for_what_was_let_in_before_there_was_a_rate() -> None:
    lane = LanePace(lambda: 5.0)
    lane.rate = 10.0
    assert lane.after(500) == pytest.approx(WAIT_S)
