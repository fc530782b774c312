"""Flaws that are planted into a copy of the engine, one at a time, to see that some test notices.

`make mutants` runs all of them. `docs/guarantees.md` lists each with the test that catches it.
"""

from tests.mutants import gate, ledger, money, roles, sale
from tests.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (*gate.MUTANTS, *ledger.MUTANTS, *roles.MUTANTS, *sale.MUTANTS, *money.MUTANTS)
