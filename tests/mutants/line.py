"""Flaws of the line: places, the draw, serving, what the audit sees of it."""

from tests.mutants.mutant import Mutant

_GATE = "tests/backends/gate/test_line.py"
_SQL = "tests/backends/sql/test_lines.py"
_API = "tests/api/test_line.py"
_FAULTS = "tests/api/test_line_faults.py"
_AUDIT = "tests/audit/test_line.py"

MUTANTS = (
    Mutant(
        name="Whoever presses gets a unit that belongs to the line",
        trap="ours",
        path="backends/redis/lua/admit.lua",
        edits={"  if status == 'line' and now_ms < ends_ms": "  if status == 'never' and now_ms < ends_ms"},
        caught_by=f"{_GATE}::test_only_those_in_the_line_get_a_unit[valkey]",
    ),
    Mutant(
        name="Whoever has waited in line cools down",
        trap="ours",
        path="backends/redis/lua/admit.lua",
        edits={" or by == 'late-' or by == 'line-' then": " or by == 'late-' then"},
        caught_by=f"{_GATE}::test_who_has_waited_in_line_need_not_cool_down[valkey]",
    ),
    Mutant(
        name="Nobody tells the gate that the units belong to the line",
        trap="ours",
        path="domain/sale.py",
        edits={"        return OPEN_TO_LINE if self.lined and": "        return OPEN_TO_LINE if False and"},
        caught_by=f"{_GATE}::test_only_those_in_the_line_get_a_unit[memory]",
    ),
    Mutant(
        name="Two who join at once may get one place",
        trap="ours",
        path="backends/sql/line_rows.py",
        edits={
            "select(lines).where(lines.c.round_id == round_id).with_for_update()": "select(lines).where(lines.c.round_id == round_id)"
        },
        caught_by=f"{_SQL}::test_places_follow_each_other_however_many_nodes_write[postgres]",
    ),
    Mutant(
        name="Whoever comes after the beginning is in the draw",
        trap="ours",
        path="backends/sql/line_joining.py",
        edits={"    row = await close_if_due(connection, use.database, use.entries, row)\n    known =": "    known ="},
        caught_by=f"{_SQL}::test_a_list_is_closed_when_its_time_comes_and_places_are_given_once[sqlite]",
    ),
    Mutant(
        name="Who left before the list was closed is drawn",
        trap="ours",
        path="backends/sql/line_joining.py",
        edits={'            values["place"] = -entry_id': '            values["place"] = None'},
        caught_by=f"{_SQL}::test_a_list_is_closed_when_its_time_comes_and_places_are_given_once[sqlite]",
    ),
    Mutant(
        name="A draw that is made again moves people",
        trap="ours",
        path="backends/sql/line_draws.py",
        edits={"_e.id == placed.entry, _e.place.is_(None))": "_e.id == placed.entry)"},
        caught_by=f"{_SQL}::test_a_list_is_closed_when_its_time_comes_and_places_are_given_once[sqlite]",
    ),
    Mutant(
        name="The beacon may be chosen before the list is closed",
        trap="ours",
        path="backends/sql/lines.py",
        edits={"    if line.closed_ms is None or line.list_hash is None:": "    if False:"},
        caught_by=f"{_SQL}::test_a_beacon_is_given_once_and_not_before_the_list_is_closed[sqlite]",
    ),
    Mutant(
        name="The seed is shown before the draw is made",
        trap="ours",
        path="domain/line.py",
        edits={"        return None if self.drawn_ms is None else self.seed": "        return self.seed"},
        caught_by=f"{_API}::test_a_draw_gives_places_that_anybody_can_check_and_units_follow_them",
    ),
    Mutant(
        name="Places follow the order of arrival, not the ranks",
        trap="ours",
        path="engine/line/drawing.py",
        edits={"                    ranking.rank(entry_id) + number": "                    bytes(32) + number"},
        caught_by=f"{_API}::test_a_draw_gives_places_that_anybody_can_check_and_units_follow_them",
    ),
    Mutant(
        name="Who comes later is called first",
        trap="ours",
        path="backends/sql/line_serving.py",
        edits={"            .order_by(_e.place)\n": "            .order_by(_e.place.desc())\n"},
        caught_by=f"{_SQL}::test_the_best_places_are_called_as_far_as_units_go[sqlite]",
    ),
    Mutant(
        name="A unit that is spoken for is promised to the next as well",
        trap="ours",
        path="backends/sql/line_serving.py",
        edits={" - sum(entry.quantity for entry in called if entry.item == item)": ""},
        caught_by=f"{_SQL}::test_the_best_places_are_called_as_far_as_units_go[sqlite]",
    ),
    Mutant(
        name="Somebody leaves while the gate is asked for them",
        trap="ours",
        path="backends/sql/line_joining.py",
        edits={"    if state in (EntryState.CALLED, EntryState.SERVED):": "    if state is EntryState.SERVED:"},
        caught_by=f"{_SQL}::test_the_best_places_are_called_as_far_as_units_go[sqlite]",
    ),
    Mutant(
        name="A keeper that has lost the line goes on noting",
        trap="ours",
        path="backends/sql/line_serving.py",
        edits={"    if row is None or row.lease != token:": "    if row is None:"},
        caught_by=f"{_SQL}::test_one_keeper_serves_a_line_at_a_time[sqlite]",
    ),
    Mutant(
        name="Each time the gate is asked for an entry, it is another claim",
        trap="ours",
        path="engine/line/serving.py",
        edits={"e.quantity, e.request_id, e.metadata": 'e.quantity, f"{e.request_id}{time.time_ns()}", e.metadata'},
        caught_by=f"{_FAULTS}::test_what_a_keeper_has_begun_another_goes_on_with[gate]",
    ),
    Mutant(
        name="A waiting list takes entries while units are left",
        trap="ours",
        path="engine/line/joining.py",
        edits={"        if view.available > 0:": "        if False:"},
        caught_by=f"{_API}::test_a_waiting_list_begins_when_all_is_sold",
    ),
    Mutant(
        name="What comes back goes to whoever presses, not to those who wait",
        trap="ours",
        path="backends/sql/lines.py",
        edits={"this.values(lined=1, revision=": "this.values(lined=0, revision="},
        caught_by=f"{_API}::test_a_waiting_list_begins_when_all_is_sold",
    ),
    Mutant(
        name="Nobody is told that no unit can come back",
        trap="ours",
        path="engine/line/serving.py",
        edits={"            await self._pass_over(round_, SOLD_OUT)": "            pass"},
        caught_by=f"{_API}::test_when_no_unit_can_come_back_those_who_wait_are_told",
    ),
    Mutant(
        name="Another buyer's entry is shown",
        trap="ours",
        path="engine/line/joining.py",
        edits={
            "        return found if found is not None and found.entry.user == user else None": "        return found"
        },
        caught_by=f"{_API}::test_joining_is_refused_with_a_reason",
    ),
    Mutant(
        name="The audit does not see who was overtaken",
        trap="ours",
        path="audit/line_checks.py",
        edits={
            '    .where(_e.quantity >= bindparam("quantity"))': '    .where(_e.quantity > bindparam("quantity") + 1000)'
        },
        caught_by=f"{_AUDIT}::test_what_is_wrong_with_a_line_is_named[sqlite-overtaken]",
    ),
    Mutant(
        name="The audit does not see idle units",
        trap="ours",
        path="audit/line_checks.py",
        edits={"        if gate.now_ms - since_ms > IDLE_MS:": "        if False:"},
        caught_by=f"{_AUDIT}::test_units_that_lie_idle_while_people_wait_are_noticed[sqlite]",
    ),
    Mutant(
        name="What was told of an entry changes when its buyer joins again",
        trap="ours",
        path="backends/sql/feed.py",
        edits={"    if row.facts is not None:": "    if False:"},
        caught_by=f"{_API}::test_what_was_told_of_an_entry_stays_when_its_buyer_joins_again",
    ),
)
