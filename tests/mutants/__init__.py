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
    figures,
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
    shared_entries,
    shared_limits,
    traces,
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
        shared_entries,
        shared_limits,
        web,
        confirm,
        money,
        providers,
        vouchers,
        audit,
        feed,
        figures,
        items,
        webhooks,
        door,
        line,
        operators,
        upgrades,
        traces,
        data,
        chaos,
        rehearsal,
    )
    for mutant in part.MUTANTS
)
