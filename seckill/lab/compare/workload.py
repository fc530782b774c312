"""Decides who presses "buy", and in which order: the same for every strategy of a run, and for every run with the same
seed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

# Impatient people press several times, which finds the gap between "has this person bought?" and the order.
IMPATIENT_SHARE = 1 / 2
IMPATIENT_PRESSES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    stock: int
    buyers: int
    seed: int
    limit_per_buyer: int = 1

    def presses(self) -> list[int]:
        """Returns the buyer's number for each press. The presses of one person are neighbours: they are made at once,
        and neighbours reach different processes."""
        chance = random.Random(self.seed)  # noqa: S311 (a crowd, not a secret)
        people = list(range(1, self.buyers + 1))
        chance.shuffle(people)
        impatient = set(chance.sample(people, round(self.buyers * IMPATIENT_SHARE)))
        return [person for person in people for _ in range(IMPATIENT_PRESSES if person in impatient else 1)]


def waves(presses: Sequence[int], count: int) -> list[Sequence[int]]:
    """Cuts the presses into consecutive parts of about the same size."""
    edges = [len(presses) * part // count for part in range(count + 1)]
    return [presses[begin:end] for begin, end in pairwise(edges)]
