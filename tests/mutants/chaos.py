"""Flaws of chaos's judgement of what the shop was told."""

from tests.mutants.mutant import Mutant

JUDGEMENT = "lab/chaos/event_judgement.py"
PLANTED = "tests/lab/chaos/test_judgement.py::test_a_planted_flaw_is_called_by_its_name"
SHOP = "tests/lab/chaos/test_shop.py"

MUTANTS = (
    Mutant(
        name="Chaos does not mind in which order an order's events are told",
        trap="ours",
        path=JUDGEMENT,
        edits={"if found != list(demanded):": "if sorted(found) != sorted(demanded):"},
        caught_by=f"{PLANTED}[swap_events-feed]",
    ),
    Mutant(
        name="Chaos does not mind events of orders that the ledger does not have",
        trap="ours",
        path=JUDGEMENT,
        edits={"    for about, found in told.items():\n": "    for about, found in ():\n"},
        caught_by=f"{PLANTED}[tell_of_nothing-feed]",
    ),
    Mutant(
        name="Chaos takes a webhook that was refused for delivered",
        trap="ours",
        path=JUDGEMENT,
        edits={"if arrival.genuine and arrival.taken}": "if arrival.genuine}"},
        caught_by=f"{PLANTED}[never_get_a_yes-webhook]",
    ),
    Mutant(
        name="Chaos does not mind in which order an order's webhooks arrive",
        trap="ours",
        path=JUDGEMENT,
        edits={"if event.cursor < last.get(event.subject, 0):": "if event.cursor < 0:"},
        caught_by=f"{PLANTED}[deliver_out_of_order-webhook]",
    ),
    Mutant(
        name="Chaos takes every webhook for genuine",
        trap="ours",
        path="lab/chaos/webhook_receiver.py",
        edits={"genuine=False, taken=taken": "genuine=True, taken=taken"},
        caught_by=f"{SHOP}::test_the_receiver_tells_what_is_genuine_and_refuses_nothing_when_the_faults_are_over",
    ),
    Mutant(
        name="Asked again after no answer, chaos follows the feed from its beginning",
        trap="ours",
        path="lab/chaos/feed_watch.py",
        edits={"            self._turn += 1\n": "            self._turn += 1\n            self._cursor = 0\n"},
        caught_by=f"{SHOP}::test_a_shop_reads_on_where_it_was_at_whichever_api_answers",
    ),
    Mutant(
        name="Chaos calls it a leak that a unit came back late",
        trap="ours",
        path="lab/chaos/sell_out.py",
        edits={"            await self.sell()\n            await rest()\n": "            await rest()\n"},
        caught_by="tests/lab/chaos/test_sell_out.py::test_what_comes_back_when_all_is_at_rest_is_sold",
    ),
    Mutant(
        name="Chaos calls it a leak that nobody was answered",
        trap="ours",
        path="lab/chaos/judgement.py",
        edits={
            "                if (why := evidence.unclear.get(round_.title)) is None:\n": "                if why := 'slow':\n"
        },
        caught_by="tests/lab/chaos/test_sell_out.py::test_buyers_who_get_no_answers_can_tell_nothing",
    ),
    Mutant(
        name="Chaos blames the machine for every unit that nobody could buy",
        trap="ours",
        path="lab/chaos/sell_out.py",
        edits={" and self._refused[sale.id] < REFUSALS_MIN:\n": ":\n"},
        caught_by="tests/lab/chaos/test_sell_out.py::test_what_nobody_can_buy_is_a_leak",
    ),
)
