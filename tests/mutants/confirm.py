"""Flaws of claims that wait for the ledger."""

from tests.mutants.mutant import Mutant

_FORGETS = "tests/api/test_confirm.py::test_a_gate_that_forgets_takes_no_yes_with_it[ledger]"
_TELLS = "tests/api/test_confirm.py::test_until_it_is_written_no_answer_tells_of_it"

MUTANTS = (
    Mutant(
        name="A sale that confirms in the ledger says yes at the gate",
        trap="F72",
        path="web/claims/claim_wait.py",
        edits={"return sale.confirm is _LEDGER and answer.outcome in TELLING": "return False"},
        caught_by=_FORGETS,
        also=(_TELLS,),
    ),
    Mutant(
        name="Where nothing was written in time, a sale that confirms in the ledger says yes",
        trap="F72",
        path="web/claims/claim.py",
        edits={"        if sale.confirm is Confirm.LEDGER:\n": "        if False:\n"},
        caught_by=_FORGETS,
        also=(_TELLS,),
    ),
    Mutant(
        name="Who is at the limit is told of orders that the ledger does not have yet",
        trap="ours",
        path="web/claims/claim_wait.py",
        edits={"Outcome.REPEATED, Outcome.LIMIT_REACHED))": "Outcome.REPEATED))"},
        caught_by=_TELLS,
    ),
    Mutant(
        name="The list has orders that are not confirmed yet",
        trap="ours",
        path="engine/orders/buyer_orders.py",
        edits={" if unconfirmed or not self._is_unconfirmed(o)]": "]"},
        caught_by=_TELLS,
    ),
    Mutant(
        name="An order that failed is said to be created",
        trap="ours",
        path="web/claims/claim.py",
        edits={"        if order.state is OrderState.FAILED:\n": "        if False:\n"},
        caught_by="tests/api/test_confirm.py::test_an_order_that_fails_is_no_yes",
    ),
    Mutant(
        name="Each claim that waits looks for its order",
        trap="ours",
        path="web/claims/claim_wait.py",
        edits={"queued(sale, holding) if answer.outcome is Outcome.ADMITTED else None": "None"},
        caught_by="tests/api/test_confirm.py::test_waiting_costs_no_query_for_each_claim",
    ),
    Mutant(
        name="A buyer may wait with as many claims as they like",
        trap="ours",
        path="web/claims/claim_wait.py",
        edits={
            "            with self._seats.taken_by(user, address):\n                found": (
                "            if True:\n                found"
            )
        },
        caught_by="tests/api/test_confirm.py::test_one_buyer_has_so_many_seats_and_no_more[gate]",
        also=("tests/api/test_confirm.py::test_one_buyer_has_so_many_seats_and_no_more[ledger]",),
    ),
)
