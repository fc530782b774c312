"""Flaws of the pure rule and of the gate and streams in memory, most of which the simulation has to notice.

They are the same mistakes as those of the scripts in `gate.py`: what is looked for there by a test each is found here
by nothing but people who buy, troubles, and the invariants.
"""

from tests.mutants.mutant import SIMULATION, Mutant

RULE = "domain/admission.py"
GATE = "backends/memory/gate.py"
STREAMS = "backends/memory/transport.py"

MUTANTS = (
    Mutant(
        name="The rule knows no limit per buyer",
        trap="F49",
        path=RULE,
        edits={
            "for holding in live) + claim.quantity > state.limit_per_buyer:": "for holding in live) + claim.quantity > 1000:"
        },
        caught_by=SIMULATION,
    ),
    Mutant(
        name="The rule sells more than there is",
        trap="F47",
        path=RULE,
        edits={"    if state.left_of(claim.item) < claim.quantity:\n": "    if state.available < 0:\n"},
        caught_by=SIMULATION,
    ),
    Mutant(
        name="The rule never sells the last unit",
        trap="F48",
        path=RULE,
        edits={
            "    if state.left_of(claim.item) < claim.quantity:\n": "    if state.left_of(claim.item) <= claim.quantity:\n"
        },
        caught_by=SIMULATION,
    ),
    Mutant(
        name="The rule does not recognise a repeat",
        trap="F9",
        path=RULE,
        edits={"if holding.request_id == claim.request_id), None)": "if holding.request_id == ''), None)"},
        caught_by=SIMULATION,
    ),
    Mutant(
        name="The rule looks at the stock before the buyer's own orders",
        trap="F8",
        path=RULE,
        edits={"    if not claim.request_id:\n": "    if not claim.request_id or state.available < claim.quantity:\n"},
        caught_by="tests/backends/gate/test_admit.py::test_a_repeat_gets_its_order_also_when_sold_out[memory]",
    ),
    Mutant(
        name="The rule takes a missing round for sold out",
        trap="F3",
        path=RULE,
        edits={
            "    if state is None:\n        return state, Answer(Outcome.NOT_READY)\n": "    if state is None:\n        return state, Answer(Outcome.SOLD_OUT)\n"
        },
        caught_by=SIMULATION,
    ),
    Mutant(
        name="The gate in memory gives back again what came back",
        trap="F62",
        path=GATE,
        edits={"        buyers[release.user] = mine.without(": "        mine.without("},
        caught_by=SIMULATION,
    ),
    Mutant(
        name="The gate in memory takes back what a rebuild has taken back",
        trap="F51",
        path=GATE,
        edits={"held is None or held.status is GateStatus.PREPARING or held.epoch < release.epoch:": "held is None:"},
        caught_by="tests/backends/gate/test_release.py::test_a_release_of_a_newer_epoch_waits[memory]",
    ),
    Mutant(
        name="The gate in memory loses an entry of a batch",
        trap="F10",
        path=GATE,
        edits={"ref.lane, write_together(entries), ": "ref.lane, write_together(entries[1:]), "},
        caught_by=SIMULATION,
    ),
    Mutant(
        name="The gate in memory gives a number twice",
        trap="F22",
        path=GATE,
        edits={"            self._count(ref.lane, today, state.counter, now_ms)\n": ""},
        caught_by=SIMULATION,
    ),
    Mutant(
        name="The gate in memory is rebuilt with its full stock",
        trap="F51",
        path=GATE,
        edits={"available=total - admitted + released,": "available=total,"},
        caught_by=SIMULATION,
    ),
    Mutant(
        name="The gate in memory is filled again by a second opening",
        trap="F69",
        path=GATE,
        edits={
            "            if held is not None:\n                found": "            if held is not None and held.revision < 0:\n                found"
        },
        caught_by="tests/backends/gate/test_rounds.py::test_a_second_opening_changes_nothing[memory]",
    ),
    Mutant(
        name="In memory, what a dead worker had is not taken over",
        trap="F39",
        path=STREAMS,
        edits={"if now_ms - held.since_ms >= idle_s * 1000]": "if now_ms < held.since_ms]"},
        caught_by=SIMULATION,
    ),
    Mutant(
        name="In memory, settled entries stay",
        trap="F35",
        path="backends/memory/store.py",
        edits={"return held, self.entries.pop(entry_id, None) is not None": "return held, entry_id in self.entries"},
        caught_by=SIMULATION,
    ),
)
