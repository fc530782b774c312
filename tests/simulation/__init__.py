"""The engine's own use cases on stores in memory, in made-up time, with a scheduler that reorders, delays, repeats and
kills at every await. `docs/simulation.md` says what is simulated and how to play a run again.

    verdict = simulate(seed)                  # one run; `verdict.held`, or `verdict.broken` says what was not
    verdict = simulate(seed, plant=planted)   # the same with a flaw: `planted` is called for a context manager that
                                              # changes the engine (monkeypatch) for as long as the run lasts

The names of what is broken begin with the invariant's: "I4: round 1 counts …".
"""

from tests.simulation.run import Plant, Verdict, simulate

__all__ = ["Plant", "Verdict", "simulate"]
