"""Flaws of payments: what is noted, what it pays for, and what goes back."""

from tests.mutants.mutant import Mutant

PAYMENTS = "backends/sql/payments.py"

MUTANTS = (
    Mutant(
        name="A shop that forgot a setting gives its goods away",
        trap="ours",
        path="operations/production_refusals.py",
        edits={'if found and settings.rehearsal == "off":': 'if found and settings.rehearsal == "never":'},
        caught_by="tests/e2e/test_rehearsal.py::test_a_sandbox_of_the_shops_own_is_one_as_well",
    ),
    Mutant(
        name="Any callback is genuine",
        trap="S26",
        path="backends/payment/callback_signature.py",
        edits={"    if not any(matches):\n": "    if not matches:\n"},
        caught_by="tests/api/payments/test_callback.py::test_signatures_of_others_of_other_bodies_and_of_other_times[sqlite]",
    ),
    Mutant(
        name="A callback may be played again for ever",
        trap="S26",
        path="backends/payment/callback_signature.py",
        edits={"    if abs(now_s - int(form[1])) > AGE_S_MAX:\n": "    if now_s < 0:\n"},
        caught_by="tests/api/payments/test_callback.py::test_signatures_of_others_of_other_bodies_and_of_other_times[sqlite]",
    ),
    Mutant(
        name="Any amount pays an order",
        trap="S26",
        path="domain/payment_fate.py",
        edits={
            "return (amount_cents, currency) == (order.price_cents, order.currency)": "return currency == order.currency"
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
        edits={"            await self._owe(connection, payment_id, reason)\n": ""},
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
        path="backends/payment/callback.py",
        edits={r"{1,128}$(?!\n)": "{1,128}$"},
        caught_by="tests/api/payments/test_callback.py::test_a_genuine_callback_that_makes_no_sense[sqlite]",
    ),
    Mutant(
        name="An operator may refund more than the price",
        trap="ours",
        path="domain/refund.py",
        edits={"    if cents > left:\n": "    if left < 0:\n"},
        caught_by="tests/backends/sql/test_order_actions.py::test_refunds_in_parts_up_to_the_price[sqlite]",
        also=(
            "tests/backends/sql/test_order_actions.py::test_refunds_at_once_never_give_back_more_than_the_price[sqlite]",
        ),
    ),
    Mutant(
        name="A request that is repeated refunds again",
        trap="ours",
        path="engine/orders/operator_actions.py",
        edits={"    if not key:\n": "    if key or not key:\n"},
        caught_by="tests/api/payments/test_order_actions.py::test_the_same_key_refunds_once[sqlite]",
    ),
    Mutant(
        name="A key stands for any wish",
        trap="ours",
        path="backends/sql/order_actions.py",
        edits={"ActionOutcome.REPEATED if found == action else ActionOutcome.KEY_REUSED": "ActionOutcome.REPEATED"},
        caught_by="tests/backends/sql/test_order_actions.py::test_the_same_request_counts_once_and_for_one_wish_only[sqlite]",
    ),
    Mutant(
        name="Units that stay sold are on sale again",
        trap="ours",
        path="backends/sql/end_orders.py",
        edits={"if reversal.return_units and await": "if reversal and await"},
        caught_by="tests/backends/sql/test_order_actions.py::test_a_refund_in_full[sqlite-False]",
    ),
    Mutant(
        name="Units come back with every refund of an order",
        trap="F62",
        path="backends/sql/end_orders.py",
        edits={
            "this = and_(orders.c.id == int(order.number), orders.c.active_slot.is_not(None))": "this = orders.c.id == int(order.number)"
        },
        caught_by="tests/backends/sql/test_order_actions.py::test_units_go_back_with_any_part_and_only_once[sqlite]",
    ),
    Mutant(
        name="A buyer waits because an operator has cancelled",
        trap="S18",
        path="backends/sql/end_orders.py",
        edits={"    lapsed = state in LAPSED and row.closed_by is None\n": "    lapsed = state in LAPSED\n"},
        caught_by="tests/backends/sql/test_order_actions.py::test_a_buyer_does_not_wait_for_what_an_operator_has_cancelled[sqlite]",
    ),
    Mutant(
        name="Late money buys what an operator has cancelled",
        trap="ours",
        path="engine/money/late_payments.py",
        edits={"        if late.order.closed_by == OPERATOR:": "        if late.order.closed_by == CANCELLED:"},
        caught_by="tests/api/payments/test_order_actions.py::test_money_for_what_an_operator_has_cancelled_goes_back[sqlite]",
    ),
    Mutant(
        name="The provider is asked for the whole payment instead of the refund",
        trap="ours",
        path="backends/payment/callback.py",
        edits={
            '            "amount_cents": refund.amount_cents,\n': '            "amount_cents": refund.capture.amount_cents,\n'
        },
        caught_by="tests/api/payments/test_providers.py::test_the_payment_side_is_asked_for_the_part_that_goes_back[sqlite]",
    ),
    Mutant(
        name="Nobody hears that the provider will not make a refund",
        trap="ours",
        path="engine/money/refunds.py",
        edits={"        if refund.refused is None:\n": "        if refund.refused is not None:\n"},
        caught_by="tests/api/payments/test_order_actions.py::test_a_provider_that_says_no_for_good_is_an_alarm_and_is_shown[sqlite]",
    ),
    Mutant(
        name="The audit does not add up what went back",
        trap="ours",
        path="audit/money_checks.py",
        edits={"    if pays and back != row.refunded_cents:\n": "    if not pays and back != row.refunded_cents:\n"},
        caught_by="tests/audit/test_plantings.py::test_a_planted_flaw_is_named[a part of the price goes back, and the order does not say so-sqlite]",
    ),
)
