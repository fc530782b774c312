"""Flaws of the feed: events that are missing, twice, out of order, or not as they were."""

from tests.mutants.mutant import Mutant

FEED = "backends/sql/feed.py"
TESTS = "tests/backends/sql/test_feed.py"

MUTANTS = (
    Mutant(
        name="A reader of the feed passes over a commit that comes later",
        trap="ours",
        path=FEED,
        edits={
            ".where(feed.c.first_cursor.is_(None)).order_by(feed.c.id)": ".where(feed.c.first_cursor.is_(None), "
            'feed.c.id > select(func.coalesce(func.max((done := feed.alias("done")).c.id), 0))'
            ".where(done.c.first_cursor.is_not(None)).scalar_subquery()).order_by(feed.c.id)"
        },
        caught_by=f"{TESTS}::test_a_commit_that_comes_later_is_not_passed_over[postgres]",
    ),
    Mutant(
        name="The end of an order is not told",
        trap="ours",
        path="backends/sql/end_orders.py",
        edits={"for type_ in of_change(before, to):": "for type_ in ():"},
        caught_by=f"{TESTS}::test_an_order_from_its_row_to_its_end[sqlite]",
        also=("tests/lab/chaos/test_shop.py::test_a_shop_is_told_everything_though_it_refuses_and_one_api_is_away",),
    ),
    Mutant(
        name="A refund of a part is not told",
        trap="ours",
        path="backends/sql/order_actions.py",
        edits={"            await self._tell_refund(connection, order, action_id, units)\n": ""},
        caught_by=f"{TESTS}::test_what_operators_do_to_orders[sqlite]",
    ),
    Mutant(
        name="The event of a refund of a part has the amount that was taken",
        trap="ours",
        path="backends/sql/feed_entries.py",
        edits={'            "amount_cents": refund.amount_cents,  # may be less than what was taken\n': ""},
        caught_by=f"{TESTS}::test_what_operators_do_to_orders[sqlite]",
    ),
    Mutant(
        name="An order that was paid tells of a refund that came later",
        trap="ours",
        path="domain/event.py",
        edits={
            "refunded_cents=order.refunded_cents if state is OrderState.REFUNDED else 0": "refunded_cents=order."
            "refunded_cents"
        },
        caught_by=f"{TESTS}::test_what_operators_do_to_orders[sqlite]",
    ),
    Mutant(
        name="A provider that refuses is told of each time",
        trap="ours",
        path="backends/sql/payments.py",
        edits={"where(waits, refunds.c.refused.is_(None))": "where(waits)"},
        caught_by=f"{TESTS}::test_a_provider_that_refuses_is_told_of_once[sqlite]",
    ),
    Mutant(
        name="On PostgreSQL, new orders are not told",
        trap="ours",
        path="backends/sql/postgres.py",
        edits={'events.cte("events"), entries.cte("entries")': 'events.cte("events")'},
        caught_by=f"{TESTS}::test_an_order_from_its_row_to_its_end[postgres]",
    ),
    Mutant(
        name="An event is written before the change that it tells of",
        trap="ours",
        path="backends/sql/payments.py",
        edits={
            '        pays = await self._endings.pay(connection, number, f"paid:{capture.provider}")\n': "",
            "        of = known.number if pays else None\n": "",
            "known, capture, pays=of)\n        if pays:": "known, capture, pays=None)\n"
            '        if await self._endings.pay(connection, number, f"paid:{capture.provider}"):',
        },
        caught_by=f"{TESTS}::test_two_changes_of_an_order_that_waited_for_each_other_are_told_in_their_order[postgres]",
    ),
    Mutant(
        name="What is done once more is told once more",
        trap="ours",
        path="backends/sql/payments.py",
        edits={".where(this, refunds.c.done_ms.is_(None))": ".where(this)"},
        caught_by=f"{TESTS}::test_money_that_comes_late[sqlite]",
    ),
    Mutant(
        name="An event tells what happened later",
        trap="ours",
        path=FEED,
        edits={"order=as_of(past.order, OrderState(change.to_state)),": "order=past.order,"},
        caught_by=f"{TESTS}::test_an_order_from_its_row_to_its_end[sqlite]",
    ),
    Mutant(
        name="Who reads on after what was pruned is not told",
        trap="ours",
        path=FEED,
        edits={"if after is not None and not oldest <= after <= newest:": "if after is not None and after > newest:"},
        caught_by=f"{TESTS}::test_what_is_pruned_is_gone_and_says_so[sqlite]",
    ),
)
