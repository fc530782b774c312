"""More than a hundred runs, each with its own people and troubles. `make simulate` does thousands."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.simulation import Verdict, simulate

# Against what breaks often: most of the flaws in `test_controls.py` are found within the first 60 seeds, and every
# chunk has to meet every trouble. What is rare is looked for by `make simulate`, in thousands of them.
CHUNKS = 3
SEEDS_OF_A_CHUNK = 40
# Every chunk must have seen these, or it has shown nothing.
TROUBLES = (
    *("kills", "stops", "cuts", "losses", "failovers", "doubles", "poison", "admitted", "sold_out", "not_ready"),
    *("operator cancel done", "operator refund done", "an item is sold out"),
    *("joined", "left the line", "entry served", "entry passed_over", "join_the_line", "a shared limit is reached"),
    *("an entry is removed", "a line is paused"),
)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_whatever_happens_everything_holds_and_comes_to_rest(chunk: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(1 + chunk * SEEDS_OF_A_CHUNK, 1 + (chunk + 1) * SEEDS_OF_A_CHUNK):
        verdict = simulate(seed)
        assert verdict.held, _tell(verdict)
        counts.update(verdict.counts)
    assert not [trouble for trouble in TROUBLES if not counts[trouble]]


def _tell(verdict: Verdict) -> str:
    return f"{verdict.broken}\nmake simulate SEED={verdict.seed}\n" + "\n".join(verdict.trace[-100:])


def test_a_seed_gives_the_same_run_again() -> None:
    """It does so in another process, too, where Python puts its sets in another order."""
    here = [simulate(7), simulate(8), simulate(7)]
    assert here[0].digest == here[2].digest != here[1].digest
    program = "from tests.simulation import simulate; print(simulate(8).digest, simulate(7).digest)"
    there = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONHASHSEED": "4711"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.split() == [here[1].digest, here[0].digest]
