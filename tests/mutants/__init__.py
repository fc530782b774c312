"""Flaws that are planted into a copy of the engine, one at a time, to see that some test notices.

`make mutants` runs all of them. `docs/guarantees.md` lists each with the test that catches it.
"""

from tests.mutants import audit, gate, ledger, money, reference, roles, sale, web
from tests.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = tuple(
    mutant for part in (gate, reference, ledger, roles, sale, web, money, audit) for mutant in part.MUTANTS
)
