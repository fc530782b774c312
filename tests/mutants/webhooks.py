"""Flaws of webhooks: deliveries that are lost, sent twice or out of order, and those that look around in our network."""

from tests.mutants.mutant import Mutant

DISPATCH = "backends/sql/webhook_dispatch.py"
ROWS = "backends/sql/webhook_rows.py"
SITTING = "engine/webhooks/endpoint_delivery.py"
SENDER = "backends/webhook/sender.py"
LEDGER = "tests/backends/sql/test_webhooks.py"
DELIVERY = "tests/api/webhooks/test_delivery.py"
SENDING = "tests/backends/webhook/test_sender.py"

MUTANTS = (
    Mutant(
        name="A keeper takes an endpoint that another one has taken",
        trap="ours",
        path=DISPATCH,
        edits={"            or_(webhooks.c.lease_ms.is_(None), webhooks.c.lease_ms <= now_ms),\n": ""},
        caught_by=f"{LEDGER}::test_what_one_keeper_has_taken_no_other_gets[sqlite]",
    ),
    Mutant(
        name="A keeper notes deliveries after its lease has gone to another",
        trap="ours",
        path=DISPATCH,
        edits={
            "mine = and_(webhooks.c.id == webhook_id, webhooks.c.lease == lease.token)": "mine = and_(webhooks.c.id == "
            "webhook_id)"
        },
        caught_by=f"{LEDGER}::test_who_has_lost_the_lease_notes_nothing[sqlite]",
    ),
    Mutant(
        name="The cursor moves on before what it passes is delivered",
        trap="ours",
        path=SITTING,
        edits={
            "            cursor=self._cursor,\n            new=": "            cursor=self._read_to,\n            new="
        },
        caught_by=f"{DELIVERY}::test_a_keeper_that_stops_leaves_to_the_next_what_has_not_arrived",
    ),
    Mutant(
        name="A keeper that stops leaves a gap before what has arrived",
        trap="ours",
        path=SITTING,
        edits={"        self._leave_no_gap()\n": ""},
        caught_by=f"{DELIVERY}::test_a_keeper_that_stops_leaves_to_the_next_what_has_not_arrived",
    ),
    Mutant(
        name="Two events of one order are on their way at once",
        trap="ours",
        path=SITTING,
        edits={"elif job.subject not in busy and room > 0:": "elif room > 0:"},
        caught_by=f"{DELIVERY}::test_an_order_is_told_in_its_order_whatever_fails",
    ),
    Mutant(
        name="What follows a delivery that waits is sent before it",
        trap="ours",
        path=SITTING,
        edits={"            if job.subject in self._held:": "            if False:"},
        caught_by=f"{DELIVERY}::test_an_order_is_told_in_its_order_whatever_fails",
    ),
    Mutant(
        name="Of the deliveries of one order that wait, any is tried first",
        trap="ours",
        path=ROWS,
        edits={"can_be_asked(now_ms), not_(earlier))": "can_be_asked(now_ms), not_(and_(earlier, False)))"},
        caught_by=f"{LEDGER}::test_only_the_first_of_a_subject_is_due[sqlite]",
    ),
    Mutant(
        name="One slow delivery holds up all others of its endpoint",
        trap="ours",
        path=SITTING,
        edits={"and now_s > first.began_s + SLOW_S:": "and now_s > first.began_s + 1000:"},
        caught_by=f"{DELIVERY}::test_a_slow_endpoint_holds_up_nobody_and_a_slow_order_no_other",
    ),
    Mutant(
        name="A test after a new secret is signed with the old one alone",
        trap="ours",
        path=SITTING,
        edits={"        if found and not await self._is_as_it_was():\n            return\n": ""},
        caught_by=f"{DELIVERY}::test_what_comes_after_a_rotation_is_signed_with_the_new_secret",
    ),
    Mutant(
        name="An event after a new secret is signed with the old one alone",
        trap="ours",
        path=SITTING,
        edits={"        if page.events and not await self._is_as_it_was():\n            return\n": ""},
        caught_by=f"{DELIVERY}::test_what_comes_after_a_rotation_is_signed_with_the_new_secret",
    ),
    Mutant(
        name="An endpoint that fails for days is tried for ever",
        trap="ours",
        path=DISPATCH,
        edits={"webhooks.c.failing_ms <= since_ms)": "webhooks.c.failing_ms < 0)"},
        caught_by=f"{LEDGER}::test_after_days_it_is_disabled_and_enabled_it_goes_on[sqlite]",
    ),
    Mutant(
        name="Events that were pruned before they were sent are passed over in silence",
        trap="ours",
        path=SITTING,
        edits={"        await self._parts.alarm.raise_(AlarmCause.WEBHOOK_MISSED, facts)\n": ""},
        caught_by=f"{DELIVERY}::test_events_that_were_pruned_before_they_were_sent_are_told_of",
    ),
    Mutant(
        name="A new secret invalidates the one before at once",
        trap="ours",
        path=ROWS,
        edits={"secrets=(row.secret, row.old_secret) if overlap else (row.secret,),": "secrets=(row.secret,),"},
        caught_by=f"{DELIVERY}::test_both_secrets_sign_while_they_overlap",
    ),
    Mutant(
        name="The connection goes to what the name stands for by then",
        trap="S",
        path=SENDER,
        edits={
            "                    str(address),\n": "                    str((await self._resolve(target.host))[0]),\n"
        },
        caught_by=f"{SENDING}::test_a_name_that_stands_for_something_else_a_moment_later_leads_nowhere_else",
    ),
    Mutant(
        name="A name that stands for a public address as well may stand for ours",
        trap="S",
        path=SENDER,
        edits={"not all(map(is_public, found))": "not any(map(is_public, found))"},
        caught_by=f"{SENDING}::test_a_name_that_stands_for_our_network_is_not_called",
    ),
    Mutant(
        name="An IPv4 address in the clothes of IPv6 is not recognised",
        trap="S",
        path="domain/webhook_target.py",
        edits={"            return is_public(address.ipv4_mapped)\n": "            return True\n"},
        caught_by="tests/domain/test_webhook_target.py::test_not_public",
    ),
    Mutant(
        name="A webhook that was caught and is sent again much later is taken",
        trap="S",
        path="client/webhooks.py",
        edits={"if sent_s is None or abs(now_s - sent_s) > tolerance_s:": "if sent_s is None:"},
        caught_by="tests/public/test_webhooks.py::test_what_is_too_old_or_from_the_future_is_refused",
    ),
    Mutant(
        name="A silent name makes the receivers of all other names wait",
        trap="ours",
        path="backends/webhook/host_lookup.py",
        edits={
            "asked = self._asked.get(host)\n": "asked = None\n",
            "del self._asked[host]": "self._asked.pop(host, None)",
        },
        caught_by=f"{SENDING}::test_a_name_that_nobody_answers_for_holds_up_no_other",
    ),
    Mutant(
        name="A receiver breaks the keeper's work with what it says about patience",
        trap="ours",
        path=SENDER,
        edits={"min(float(wait), RETRY_AFTER_S_MAX)": "min(float(int(wait)), RETRY_AFTER_S_MAX)"},
        caught_by=f"{SENDING}::test_what_it_says_about_patience_breaks_nothing",
    ),
)
