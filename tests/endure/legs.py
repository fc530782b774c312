"""Which legs there are, in their order, and how one is run."""

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seckill.lab.chaos.servers.choice import GATES
from seckill.local.tether import tethered

# Ledger and gate. A set-up whose gate this version cannot start by itself is left out, and the report has none of it.
SET_UPS = [
    (ledger, gate)
    for ledger, gate in (
        ("sqlite", "valkey"),
        ("postgres", "valkey"),
        ("postgres", "sentinel"),
        ("postgres", "cluster"),
    )
    if gate in GATES
]
RUSHES_PER_CHAOS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    number: int
    kind: str  # `chaos` or `rush`
    ledger: str
    gate: str
    seed: int
    minutes: float

    @property
    def name(self) -> str:
        return f"{self.number:04}-{self.kind}-{self.ledger}-{self.gate}"

    @property
    def set_up(self) -> str:
        return f"{self.ledger}, {self.gate}"

    def command(self, out: Path) -> list[str]:
        program = ["-m", "seckill", "chaos", "--json"] if self.kind == "chaos" else ["-m", "tests.endure.rush"]
        options = {"--minutes": f"{self.minutes:g}", "--seed": str(self.seed)}
        options |= {"--database": self.ledger, "--redis": self.gate, "--out": str(out)}
        return [sys.executable, *program, *itertools.chain.from_iterable(options.items())]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a leg. `wrong`: the checks that do not hold, and what they say."""

    leg: Leg
    verdict: str  # `holds`, `broken`, or `unknown`
    admissions: int
    faults: int  # that did something
    failpoints: int
    wrong: list[str]
    took_s: float
    began: str

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, found: dict[str, Any]) -> "Result":
        return cls(**{**found, "leg": Leg(**found["leg"])})


def legs(minutes: float, first_seed: int = 1) -> Iterator[Leg]:
    """Yields legs without end: a chaos on each set-up, then rushes on each, and so on, every one with a seed of its
    own."""
    numbers = itertools.count(1)
    while True:
        for kind in ("chaos", *["rush"] * RUSHES_PER_CHAOS):
            for ledger, gate in SET_UPS:
                number = next(numbers)
                seed = first_seed + number - 1
                yield Leg(number=number, kind=kind, ledger=ledger, gate=gate, seed=seed, minutes=minutes)


def run(leg: Leg, folder: Path) -> Result:
    """Raises KeyboardInterrupt when it is interrupted: then there is no result, and it is run again."""
    out = folder / leg.name
    began, began_s = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    with (out / "said.txt").open("wb") as said:
        done = subprocess.run(tethered(leg.command(out)), stdout=subprocess.PIPE, stderr=said, check=False)
    (out / "found.json").write_bytes(done.stdout)
    took_s = round(time.monotonic() - began_s, 1)
    return judged(leg, done.stdout, began, took_s)


def judged(leg: Leg, output: bytes, began: str, took_s: float) -> Result:
    try:
        found = json.loads(output)
    except ValueError:  # it ended without a document: what it said is in its folder
        found = {"verdict": "unknown", "checks": [{"name": "run", "verdict": "unknown", "says": "it did not end"}]}
    return Result(
        leg=leg,
        verdict=found["verdict"],
        admissions=found.get("accepted", 0),
        faults=sum(bool(fault["bit"]) for fault in found.get("faults", ())),
        failpoints=sum(found.get("windows", {}).get("fired", {}).values()),
        wrong=[
            " · ".join([f"{check['name']}: {check['says']}", *check.get("named", ())[:3]])
            for check in found["checks"]
            if check["verdict"] != "holds"
        ],
        took_s=took_s,
        began=began,
    )


def totals(results: Sequence[Result]) -> tuple[int, int]:
    """Admissions and faults."""
    return sum(result.admissions for result in results), sum(result.faults for result in results)
