"""The troubles of a run, drawn from its seed. Each run has some kinds of trouble and not others: a bug that needs
two of them is not drowned by a third."""

from dataclasses import dataclass
from random import Random

# For so long things go wrong; then everything has to come to rest.
STORM_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    begins_s: float
    ends_s: float

    def covers(self, now_s: float) -> bool:
        return self.begins_s <= now_s < self.ends_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """Chances are for each call to a store."""

    lag_s: float  # a call takes up to this
    stall: float
    stall_s: float
    cut_there: float
    cut_back: float
    kill: float
    stop: float
    gate_away: Outage | None
    database_away: Outage | None
    gate_empties_s: float | None
    gate_goes_back_s: tuple[float, float] | None  # to what it was at the first, at the second
    doubles: int  # entries that are delivered once more
    poison: int  # entries that no gate has written
    clocks_differ_ms: int
    replica: str | None  # "strict": orders are answered for when it has them; "fast": they are not
    replica_lag_s: float  # what is written reaches it within this
    replica_silent: Outage | None  # and not at all meanwhile
    fails_over_s: tuple[float, ...]  # when it takes the primary's place


def draw(chance: Random) -> Weather:
    def rate(*rates: float) -> float:
        return chance.choice((0.0, 0.0, *rates))

    def sometimes(often: float) -> bool:
        return chance.random() < often

    def outage(often: float = 0.15, least_s: float = 0.1) -> Outage | None:
        begins_s = chance.uniform(0.2, STORM_S - 0.5)
        return Outage(begins_s=begins_s, ends_s=begins_s + chance.uniform(least_s, 2.0)) if sometimes(often) else None

    goes_back_s = chance.uniform(0.5, STORM_S)
    silent = outage(0.5, 0.6)
    return Weather(
        lag_s=chance.choice((0.001, 0.005, 0.02)),
        stall=rate(0.01, 0.05),
        stall_s=chance.choice((0.1, 0.6, 2.5)),
        cut_there=rate(0.01, 0.05),
        cut_back=rate(0.01, 0.05),
        kill=rate(0.002, 0.005, 0.015),
        stop=rate(0.002, 0.005),
        gate_away=outage(),
        # Both may depend on one cable: then no other server has what the replica lacks.
        database_away=silent if silent is not None and sometimes(0.4) else outage(),
        gate_empties_s=chance.uniform(0.5, STORM_S) if sometimes(0.2) else None,
        gate_goes_back_s=(goes_back_s - chance.uniform(0.05, 1.5), goes_back_s) if sometimes(0.2) else None,
        doubles=chance.randrange(6) if sometimes(0.4) else 0,
        poison=chance.randrange(1, 4) if sometimes(0.25) else 0,
        clocks_differ_ms=chance.choice((0, 0, -400, 300)),
        replica=chance.choice(("strict", "strict", "fast")) if sometimes(0.6) else None,
        replica_lag_s=chance.choice((0.005, 0.05, 0.3)),
        replica_silent=silent,
        # Most likely while the replica is behind: then it hurts.
        fails_over_s=tuple(
            chance.uniform(silent.begins_s + 0.5, silent.ends_s)
            if silent and sometimes(0.7)
            else chance.uniform(0.4, STORM_S)
            for _ in range(chance.choice((0, 1, 1, 2)))
        ),
    )
