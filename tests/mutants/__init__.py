"""Flaws that are planted into a copy of the engine, one at a time, to see that some test notices.

`make mutants` runs all of them. `docs/guarantees.md` lists each with the test that catches it.
"""

from tests.mutants import (
    audit,
    chaos,
    confirm,
    data,
    door,
    feed,
    gate,
    items,
    ledger,
    line,
    money,
    operators,
    providers,
    reference,
    rehearsal,
    roles,
    sale,
    shared_limits,
    upgrades,
    vouchers,
    web,
    webhooks,
)
from tests.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = tuple(
    mutant
    for part in (
        gate,
        reference,
        ledger,
        roles,
        sale,
        shared_limits,
        web,
        confirm,
        money,
        providers,
        vouchers,
        audit,
        feed,
        items,
        webhooks,
        door,
        line,
        operators,
        upgrades,
        data,
        chaos,
        rehearsal,
    )
    for mutant in part.MUTANTS
)
