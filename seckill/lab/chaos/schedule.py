"""Plans which fault hits which target, and when. Pure: the same seed and the same set-up give the same schedule."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

ROLES = ("api", "worker", "keeper")
SERVERS = ("gate", "ledger", "broker")

WARM_UP_S = 3.0
COOL_DOWN_S = 3.0
# Between two faults, counted from the end of the first; the second of a pair begins this much later at most.
GAP_S = (1.5, 4.0)
PAIR_WITHIN_S = 1.5
PAIR_CHANCE = 0.3


@dataclass(frozen=True, slots=True)
class Kind:
    """`calm_s`: how long no other fault is injected, because the recovery is being timed."""

    says: str
    lasts_s: tuple[float, float] = (0.0, 0.0)
    calm_s: float = 0.0


KINDS: Mapping[str, Kind] = {
    "takeover": Kind("a worker dies with entries in its hands, all else in order", calm_s=5.0),
    "comeback": Kind("the gate is killed and started again, all else in order", calm_s=5.0),
    "kill": Kind("kill -9"),
    "freeze": Kind("SIGSTOP, longer than it takes others to take over, then SIGCONT", (3.5, 5.0)),
    "pause": Kind("the server neither answers nor hangs up", (1.5, 4.0)),
    "restart": Kind("the server is killed with -9 and started again", (0.2, 1.5)),
    "silent": Kind("a replica is connected and takes nothing in, and then takes over with what it had", (2.0, 4.0)),
    "cut": Kind("all connections of a link are reset"),
    "hole": Kind("a link swallows everything, with its connections open", (2.0, 4.0)),
    "slow": Kind("a link takes a tenth of a second for each portion", (2.0, 4.0)),
    "lost-answer": Kind("the server has done it (a script, a COMMIT), and its answer is lost", (5.0, 5.0)),
    "torn": Kind("the gate is killed, and its file ends in half a write that nobody was told of"),
    "flush": Kind("the gate loses everything (FLUSHALL)", calm_s=1.0),
    "empty": Kind("the gate is killed and comes back without its files", calm_s=1.0),
    "starve": Kind("the gate has no memory left", (1.5, 3.0)),
    "full-disk": Kind("the server's disk is full", (2.0, 3.0)),
    "clock": Kind("a process is started again with its clock off by hours", (5.0, 7.0)),
}
DRILLS = ("takeover", "comeback")
FORGETTING = ("flush", "empty")


@dataclass(frozen=True, slots=True)
class Fault:
    at_s: float  # after the beginning of the load
    kind: str
    target: str  # a process of a role, a server, or a link as role→server
    lasts_s: float

    def document(self) -> dict[str, Any]:
        return asdict(self)


Option = tuple[str, str]  # kind and target


def plan(seed: int, seconds: float, options: Sequence[Option]) -> tuple[Fault, ...]:
    """Plans drills first, while no process is armed. Then every kind of fault comes once before any repeats, some in
    pairs."""
    chance = random.Random(f"{seed} schedule")  # noqa: S311 (chance, not a secret)
    faults: list[Fault] = []
    at_s = WARM_UP_S
    for kind, target in options:
        if kind in DRILLS:
            faults.append(Fault(round(at_s, 2), kind, target, 0.0))
            at_s += KINDS[kind].calm_s
    cards = _cards(chance, [option for option in options if option[0] not in DRILLS])
    for kind, target in cards:
        begins_s = at_s + chance.uniform(*GAP_S)
        first = _fault(chance, begins_s, kind, target)
        pair = [first]
        if chance.random() < PAIR_CHANCE and not KINDS[kind].calm_s:
            other, its = next(cards)
            if not KINDS[other].calm_s and its.partition("→")[0] != target.partition("→")[0]:
                pair.append(_fault(chance, begins_s + chance.uniform(0, PAIR_WITHIN_S), other, its))
        ends_s = max(fault.at_s + fault.lasts_s + KINDS[fault.kind].calm_s for fault in pair)
        if ends_s > seconds - COOL_DOWN_S:
            break
        faults += pair
        at_s = ends_s
    return tuple(sorted(faults, key=lambda fault: fault.at_s))


def _fault(chance: random.Random, at_s: float, kind: str, target: str) -> Fault:
    return Fault(round(at_s, 2), kind, target, round(chance.uniform(*KINDS[kind].lasts_s), 2))


def _cards(chance: random.Random, options: Sequence[Option]) -> Iterator[Option]:
    """Yields each kind once, in random order and with a random target, then again, without end."""
    kinds = sorted({kind for kind, _ in options})
    while kinds:
        chance.shuffle(kinds)
        for kind in kinds:
            yield kind, chance.choice([target for name, target in options if name == kind])


def storm_begins_s(faults: Sequence[Fault]) -> float:
    """Returns when the drills are over."""
    drills = [fault.at_s + KINDS[fault.kind].calm_s for fault in faults if fault.kind in DRILLS]
    return max(drills, default=WARM_UP_S)
