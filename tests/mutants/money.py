"""Flaws of payments: what is noted, what it pays for, and what goes back."""

from tests.mutants.mutant import Mutant

PAYMENTS = "backends/sql/payments.py"

MUTANTS = (
    Mutant(
        name="A shop that forgot a setting gives its goods away",
        trap="ours",
        path="operations/rehearsal.py",
        edits={'if found and settings.rehearsal == "off":': 'if found and settings.rehearsal == "never":'},
        caught_by="tests/e2e/test_rehearsal.py::test_a_sandbox_of_the_shops_own_is_one_as_well",
    ),
    Mutant(
        name="Any callback is genuine",
        trap="S26",
        path="backends/payment/signature.py",
        edits={"    if not any(matches):\n": "    if not matches:\n"},
        caught_by="tests/api/payments/test_callback.py::test_signatures_of_others_of_other_bodies_and_of_other_times[sqlite]",
    ),
    Mutant(
        name="A callback may be played again for ever",
        trap="S26",
        path="backends/payment/signature.py",
        edits={"    if abs(now_s - int(form[1])) > AGE_S_MAX:\n": "    if now_s < 0:\n"},
        caught_by="tests/api/payments/test_callback.py::test_signatures_of_others_of_other_bodies_and_of_other_times[sqlite]",
    ),
    Mutant(
        name="Any amount pays an order",
        trap="S26",
        path=PAYMENTS,
        edits={
            "if (capture.amount_cents, capture.currency) != (order.price_cents, order.currency):": "if capture.currency != order.currency:"
        },
        caught_by="tests/backends/sql/test_payments.py::test_what_does_not_fit_changes_nothing[sqlite-1-wrong0-wrong_amount]",
    ),
    Mutant(
        name="A payment of another order is taken for a repeat",
        trap="S26",
        path=PAYMENTS,
        edits={"if row.order_id != int(order.number):": "if row.order_id < 0:"},
        caught_by="tests/backends/sql/test_payments.py::test_what_does_not_fit_changes_nothing[sqlite-2-wrong4-ref_reused]",
    ),
    Mutant(
        name="A second payment of one order is kept",
        trap="S26",
        path=PAYMENTS,
        edits={"        await self._owe(connection, payment_id, ALREADY_PAID)\n": ""},
        caught_by="tests/backends/sql/test_payments.py::test_a_second_capture_goes_back_and_stays_so[sqlite]",
    ),
    Mutant(
        name="Late money for one order buys two",
        trap="F52",
        path=PAYMENTS,
        edits={"if replaced.rowcount != 1 or not await": "if not await"},
        caught_by="tests/backends/sql/test_late_payments.py::test_late_money_for_one_order_pays_no_second_one[sqlite]",
    ),
    Mutant(
        name="A late payment is decided twice",
        trap="F52",
        path=PAYMENTS,
        edits={"                if decided.rowcount != 1:\n": "                if decided.rowcount > 1:\n"},
        caught_by="tests/backends/sql/test_late_payments.py::test_a_late_payment_pays_the_order_in_its_place[sqlite]",
    ),
    Mutant(
        name="Money that has paid an order goes back as well",
        trap="F52",
        path=PAYMENTS,
        edits={"        if decided.rowcount != 1:\n            return False\n": ""},
        caught_by="tests/backends/sql/test_late_payments.py::test_settling_and_giving_back_at_the_same_instant_have_one_winner[sqlite]",
    ),
    Mutant(
        name="Several keepers take the same late payment",
        trap="F69",
        path=PAYMENTS,
        edits={
            "update(payments).where(payments.c.id.in_(ids)).values(next_ms=self._after(lease_s))": "update(payments).where(payments.c.id.in_(ids)).values(next_ms=payments.c.next_ms)"
        },
        caught_by="tests/backends/sql/test_payments.py::test_several_keepers_share_what_is_due[sqlite]",
    ),
    Mutant(
        name="A payment id may end with a line break",
        trap="ours",
        path="backends/payment/providers.py",
        edits={r"{1,128}$(?!\n)": "{1,128}$"},
        caught_by="tests/api/payments/test_callback.py::test_a_genuine_callback_that_makes_no_sense[sqlite]",
    ),
)
