"""A draw favours no one: over many seeds, each entry comes to each place equally often."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence

from seckill.domain.draw import Ranking, commitment, list_hash

ENTRIES = [f"ENTRY{number:08}" for number in range(20)]
SEEDS = 4000
FREEDOM = (len(ENTRIES) - 1) ** 2
# Six standard deviations above what chance alone gives; the seeds are always the same, so this is no matter of luck.
MOST = FREEDOM + 6 * (2 * FREEDOM) ** 0.5

Draw = Callable[[str, str], Sequence[str]]


def drawn(seed: str, beacon: str) -> Sequence[str]:
    ranking = Ranking(seed, beacon, list_hash(sorted(ENTRIES)))
    return sorted(ENTRIES, key=ranking.rank)


def unevenness(draw: Draw, *, beacons: bool = False) -> float:
    """Chi-squared of how often each entry had each place."""
    seen: Counter[tuple[str, int]] = Counter()
    for number in range(SEEDS):
        value = hashlib.sha256(str(number).encode()).hexdigest()
        order = draw("00" * 32, value) if beacons else draw(value, "")
        seen.update((entry, place) for place, entry in enumerate(order))
    wanted = SEEDS / len(ENTRIES)
    places = range(len(ENTRIES))
    return sum((seen[entry, place] - wanted) ** 2 / wanted for entry in ENTRIES for place in places)


def test_each_entry_comes_to_each_place_equally_often() -> None:
    assert unevenness(drawn) < MOST
    assert unevenness(drawn, beacons=True) < MOST, "whatever the seed was, the beacon decides"


def test_control_a_draw_that_favours_somebody_is_noticed() -> None:
    """One time in twenty, an entry that is not at the first place is put before the others."""

    def unfair(seed: str, beacon: str) -> Sequence[str]:
        order = list(drawn(seed, beacon))
        if int(commitment(seed)[:4], 16) % 20 == 0:
            order.remove(ENTRIES[7])
            order.insert(0, ENTRIES[7])
        return order

    assert unevenness(unfair) > MOST
