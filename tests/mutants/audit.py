"""Flaws of the auditor and of what the keeper makes of its findings."""

from tests.mutants.mutant import Mutant

SERVERS = "audit/gate_servers.py"
GATE = "audit/gate.py"
CHANGES = "domain/sale_change.py"

MUTANTS = (
    Mutant(
        name="The auditor goes on reading the primary that it knew",
        trap="ours",
        path=SERVERS,
        edits={"        newest = max(answers)\n": "        newest = self._named or max(answers)\n"},
        caught_by="tests/cluster/test_audit_failover.py::test_a_deposed_primary_that_still_answers_raises_no_alarm",
    ),
    Mutant(
        name="Of two nodes that claim a slot, the auditor believes the one with the lower epoch",
        trap="ours",
        path=SERVERS,
        edits={"    return claim.epoch\n": "    return -claim.epoch\n"},
        caught_by="tests/cluster/test_audit_failover.py::"
        "test_a_node_of_a_cluster_that_was_deposed_and_cut_off_raises_no_alarm",
    ),
    Mutant(
        name="The auditor believes a minority of the Sentinels",
        trap="ours",
        path=SERVERS,
        edits={"    if 2 * len(answers) < len(addresses) or not answers:\n": "    if not answers:\n"},
        caught_by="tests/cluster/test_audit_failover.py::test_a_minority_of_the_sentinels_is_not_believed",
    ),
    Mutant(
        name="What was read from a server that was replaced meanwhile counts",
        trap="ours",
        path=GATE,
        edits={"        if self.standing != standing:\n": "        if self.standing < standing:\n"},
        caught_by="tests/cluster/test_audit_failover.py::test_what_was_read_while_a_server_was_replaced_tells_nothing",
    ),
    Mutant(
        name="The auditor takes a server that has taken over again for the one that was vouched for",
        trap="ours",
        path=GATE,
        edits={"vouched and vouched != reign": "vouched and not vouched.startswith(server)"},
        caught_by="tests/cluster/test_audit_failover.py::"
        "test_a_server_that_takes_over_again_is_not_believed_before_it_was_compared",
    ),
    Mutant(
        name="The auditor does not wait for the keeper's second comparison",
        trap="ours",
        path=GATE,
        edits={"server and vouched == reign + keys.COMPARED_ONCE": "False"},
        caught_by="tests/cluster/test_audit_failover.py::"
        "test_a_server_that_takes_over_again_is_not_believed_before_it_was_compared",
    ),
    Mutant(
        name="The auditor believes a server that no keeper has vouched for",
        trap="ours",
        path=GATE,
        edits={"    if server and vouched and": "    if not server and vouched and"},
        caught_by="tests/cluster/test_audit_failover.py::test_a_server_that_no_keeper_has_vouched_for_tells_nothing",
    ),
    Mutant(
        name="An error that a cluster answers with is taken for a reading",
        trap="ours",
        path=GATE,
        edits={
            "    if isinstance(reply, _ON_THE_WAY):\n": "    if reply is None:\n",
            "    if isinstance(reply, exceptions.ResponseError):\n": "    if reply is None:\n",
        },
        caught_by="tests/cluster/test_audit_resharding.py::test_audits_in_every_state_of_a_slot_that_moves",
    ),
    Mutant(
        name="The audit opens what an operator has paused",
        trap="ours",
        path=CHANGES,
        edits={"status is RoundStatus.OPEN and round_.concerns_audit and": "status is RoundStatus.OPEN and"},
        caught_by="tests/audit/test_pauses.py::"
        "test_what_an_operator_has_paused_first_does_not_become_the_audits[sqlite]",
    ),
    Mutant(
        name="A pause stays the audit's when an operator pauses as well",
        trap="ours",
        path=CHANGES,
        edits={'        different["audit_epoch"] = None': '        different.pop("audit_epoch", None)'},
        caught_by="tests/audit/test_pauses.py::test_an_operators_pause_is_never_lifted[sqlite]",
    ),
    Mutant(
        name="A pause is lifted when the audit cannot tell",
        trap="ours",
        path="audit/report.py",
        edits={" and round_id not in wrong and not self.is_unsure(round_id)\n": " and round_id not in wrong\n"},
        caught_by="tests/audit/test_pauses.py::test_what_cannot_be_told_lifts_nothing[sqlite]",
    ),
    Mutant(
        name="A pause by a true finding is lifted",
        trap="ours",
        path="audit/report.py",
        edits={"round_id in self.rounds and round_id not in wrong and": "round_id in self.rounds and"},
        caught_by="tests/audit/test_pauses.py::test_a_true_finding_keeps_the_sale_paused[sqlite]",
    ),
    Mutant(
        name="A pause by a false alarm stays until an operator lifts it",
        trap="ours",
        path="operations/audit_pause.py",
        edits={"                if again.is_sound(round_.id):\n": "                if not again.rounds:\n"},
        caught_by="tests/audit/test_pauses.py::"
        "test_a_pause_by_a_false_alarm_is_lifted_by_another_keeper_and_said[sqlite]",
    ),
    Mutant(
        name="The keeper begins to compare all rounds, and holds a part of each",
        trap="ours",
        path="audit/comparison_schedule.py",
        edits={"reading.id in self._walks or _size(reading) <= FEW": "_size(reading) >= 0"},
        caught_by="tests/audit/test_comparison_schedule.py::test_few_rounds_are_being_compared_at_a_time_however_many_there_are",
    ),
    Mutant(
        name="The auditor does not compare until when the gate sells",
        trap="ours",
        path="audit/counter_checks.py",
        edits={"(gate.total, gate.rules) != (after.total, after.rules)": "gate.total != after.total"},
        caught_by="tests/audit/test_plantings.py::test_a_planted_flaw_is_named[the gate sells after the end-sqlite]",
    ),
    Mutant(
        name="The auditor takes any note of lapses for true",
        trap="ours",
        path="audit/buyer_checks.py",
        edits={"        if round_.cool_down_s:\n": "        if False:\n"},
        caught_by="tests/audit/test_plantings.py::"
        "test_a_planted_flaw_is_named[a buyer who let an order lapse need not wait-sqlite]",
    ),
    Mutant(
        name="A lapse that the ledger has just learned of is taken for a wrong note",
        trap="ours",
        path="audit/ledger.py",
        edits={"_lapsed(), given_back)": "_lapsed())"},
        caught_by="tests/audit/test_sound.py::test_lapses_of_every_kind[sqlite]",
    ),
    Mutant(
        name="An order may have any time to pay",
        trap="ours",
        path="audit/order_checks.py",
        edits={"if row.expires_ms > row.recorded_ms + ": "if 0 > row.recorded_ms + "},
        caught_by="tests/audit/test_plantings.py::test_a_planted_flaw_is_named[more time to pay than announced-sqlite]",
    ),
)
