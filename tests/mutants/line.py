"""Flaws of the line: places, the draw, serving, what the audit sees of it."""

from tests.mutants.mutant import Mutant

_GATE = "tests/backends/gate/test_line.py"
_SQL = "tests/backends/sql/test_lines.py"
_API = "tests/api/test_line.py"
_WAYS = "tests/api/test_two_ways_of_joining.py"
_FAULTS = "tests/api/test_line_faults.py"
_AUDIT = "tests/audit/test_line.py"
_GUESTS = "tests/api/test_line_guests.py"
_BEACON = "tests/api/test_beacon.py"
_FAILED = "tests/api/test_line_failed_orders.py"
_CROWDS = "tests/api/test_line_crowds.py"
_CHANCE = "tests/api/test_line_chance.py"

MUTANTS = (
    Mutant(
        name="The list of a draw is read anew for whoever checks it",
        trap="ours",
        path="engine/line/drawn_list.py",
        edits={"if (kept := self._kept.get(key)) is not None:": "kept = self._kept.get(key)\n        if kept == []:"},
        caught_by=f"{_CROWDS}::test_whoever_checks_a_draw_reads_what_was_read_before",
    ),
    Mutant(
        name="A page of a draw begins where a piece of the list does",
        trap="ours",
        path="engine/line/drawn_list.py",
        edits={"found += ids[max(0, after - first) : up_to - first]": "found += ids[: up_to - first]"},
        caught_by=f"{_CROWDS}::test_whoever_checks_a_draw_reads_what_was_read_before",
    ),
    Mutant(
        name="Each who wants to wait when it is sold out opens the line anew",
        trap="ours",
        path="engine/line/joining.py",
        edits={
            "await self._opening.of(sale.round.id, lambda: self._open(sale))": "await self._open(sale)",
        },
        caught_by=f"{_CROWDS}::test_all_who_want_to_wait_when_it_is_sold_out_open_the_line_once",
    ),
    Mutant(
        name="Each who looks asks the ledger alone",
        trap="ours",
        path="engine/batched_reads.py",
        edits={"super().__init__(batch_max=BATCH_MAX, ": "super().__init__(batch_max=1, "},
        caught_by=f"{_CROWDS}::test_all_who_look_when_places_are_drawn_are_a_few_queries",
    ),
    Mutant(
        name="Each who watches how far the line has come asks the ledger",
        trap="ours",
        path="engine/line/figures.py",
        edits={"return await self._asking.of(round_.id, lambda: self._ask(round_))": "return await self._ask(round_)"},
        caught_by=f"{_CROWDS}::test_all_who_watch_how_far_the_line_has_come_are_one_look",
    ),
    Mutant(
        name="A line is served as fast as it goes, whatever its pace",
        trap="ours",
        path="engine/line/serving.py",
        edits={"self._paces[round_.id].room -= max(0, len(called) - waiting.called)": "pass"},
        caught_by=f"{_API}::test_no_more_are_served_in_a_second_than_the_pace_allows",
    ),
    Mutant(
        name="Who leaves counts as ahead of those who look together",
        trap="ours",
        path="backends/sql/line_joining.py",
        edits={"max(0, place - first - bisect_left(empty, place))": "max(0, place - first)"},
        caught_by=f"{_CROWDS}::test_all_who_look_when_places_are_drawn_are_a_few_queries",
    ),
    Mutant(
        name="An event of an entry tells the metadata of a later stay in the line",
        trap="ours",
        path="backends/sql/feed.py",
        edits={"    if entry.metadata and row.at_ms >= entry.joined_ms:": "    if entry.metadata:"},
        caught_by="tests/api/test_line.py::test_what_was_told_of_an_entry_stays_when_its_buyer_joins_again",
    ),
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
        edits={"        row = await close_if_due(connection, self._use.entries, row, round_)\n": ""},
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
        name="Some have the better places whatever the seed is",
        trap="ours",
        path="domain/draw.py",
        edits={"        digest.update(entry_id.encode())\n": "        digest.update(entry_id[:-1].encode())\n"},
        caught_by="tests/domain/test_draw.py::test_each_entry_comes_to_each_place_equally_often",
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
        edits={"left[entry.item] = left.get(entry.item, 0) - entry.quantity": "pass"},
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
        edits={"e.quantity, e.request_id(attempt), ": 'e.quantity, f"{e.request_id(attempt)}{time.time_ns()}", '},
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
        name="Who was passed over before the list was closed is drawn, and a place is given twice",
        trap="ours",
        path="backends/sql/line_serving.py",
        edits={"if row.seed is not None and row.closed_ms is None:": "if False:"},
        caught_by="tests/backends/sql/test_lines.py::test_who_was_passed_over_before_the_list_was_closed_is_not_in_the_draw[sqlite]",
    ),
    Mutant(
        name="Who joins the quick way comes without the groups of the token",
        trap="ours",
        path="web/line/line_join.py",
        edits={"groups = ctx.door.groups_of(sale, buyer)": "groups = ()"},
        caught_by="tests/api/test_two_ways_of_joining.py::test_what_the_token_says_of_somebody_counts_when_it_is_their_turn[bytes]",
    ),
    Mutant(
        name="Who joins the quick way is a household of one's own",
        trap="ours",
        path="web/line/line_join.py",
        edits={'person = "" if sale.limit_by is None else person_of(buyer, sale.limit_by)': 'person = ""'},
        caught_by="tests/api/test_two_ways_of_joining.py::test_what_the_token_says_of_somebody_counts_when_it_is_their_turn[bytes]",
    ),
    Mutant(
        name="Who waits is sent away because the gate has not heard that the end was moved",
        trap="ours",
        path="engine/line/serving.py",
        edits={
            "            if round_.status is RoundStatus.CLOSED or view.now_ms >= round_.ends_ms:": "            if round_:"
        },
        caught_by="tests/api/test_line.py::test_who_waits_stays_when_the_end_was_moved_and_the_gate_has_not_heard",
    ),
    Mutant(
        name="Nobody is told that no unit can come back",
        trap="ours",
        path="engine/line/serving.py",
        edits={"            await self._pass_over(round_, SOLD_OUT, gone)": "            pass"},
        caught_by=f"{_API}::test_when_no_unit_can_come_back_those_who_wait_are_told",
    ),
    Mutant(
        name="Who wants an item that is paid for waits as long as others are left",
        trap="ours",
        path="engine/line/serving.py",
        edits={"frozenset[int]() if all(units.values()) else": "frozenset[int]() if any(units.values()) else"},
        caught_by="tests/api/test_line_items.py::test_who_wants_an_item_that_is_paid_for_need_not_wait_for_the_others",
    ),
    Mutant(
        name="The list of a draw is closed while its time is being moved",
        trap="ours",
        path="backends/sql/sales.py",
        edits={'    if "begins_ms" in decision.round and sale.door.line.draws:': "    if False:"},
        caught_by=f"{_SQL}::test_a_list_is_not_closed_while_its_time_is_moved[postgres]",
    ),
    Mutant(
        name="While places are given, the list is shown without those who have one",
        trap="ours",
        path="backends/sql/line_draws.py",
        edits={"    return found if begun is None else None": "    return found"},
        caught_by=f"{_FAULTS}::test_two_keepers_make_the_same_draw",
    ),
    Mutant(
        name="Who wants the first item is called before all others",
        trap="ours",
        path="backends/sql/line_serving.py",
        edits={"sorted(found, key=lambda entry: entry.place or 0)[:count]": "found[:count]"},
        caught_by=f"{_SQL}::test_a_line_of_several_items_is_served_by_place[sqlite]",
    ),
    Mutant(
        name="A unit that others got a moment ago is promised to those behind them",
        trap="ours",
        path="web/line/line_entries.py",
        edits={"so_far.after_offering(max(0, standing.line.served - progress.line.served))": "so_far"},
        caught_by=f"{_CHANCE}::test_a_unit_is_promised_to_nobody_else_while_figures_are_a_second_old",
    ),
    Mutant(
        name="While a unit is on its way back, those who wait are told that none can come",
        trap="ours",
        path="engine/line/figures.py",
        edits={"in_play = tally.total - tally.paid - tally.kept - tally.dead": "in_play = tally.unpaid + at_gate"},
        caught_by=f"{_CHANCE}::test_a_unit_on_its_way_back_is_a_chance",
    ),
    Mutant(
        name="A chance is told as if every line were fast",
        trap="ours",
        path="engine/line/figures.py",
        edits={"calls=calls_left(left_ms, line.serve_per_s)": "calls=None"},
        caught_by=f"{_CHANCE}::test_whoever_the_line_cannot_reach_in_time_has_no_chance",
    ),
    Mutant(
        name="A line that has units left for more than a minute stands still",
        trap="ours",
        path="audit/line_checks.py",
        edits={"        if reached != known:": "        if known is None:"},
        caught_by=f"{_AUDIT}::test_a_line_that_goes_on_is_not_idle",
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
        name="Who asks for their own entry among others is told of another's",
        trap="ours",
        path="engine/line/joining.py",
        edits={
            "        return {(standing.entry.round_id, standing.entry.user): standing for standing in found}": "        return dict(zip(asked, found, strict=False))"
        },
        caught_by=f"{_CROWDS}::test_all_who_ask_for_their_own_entry_are_a_few_queries_and_each_sees_only_that",
    ),
    Mutant(
        name="Each who asks for their own entry asks the ledger alone",
        trap="ours",
        path="engine/line/joining.py",
        edits={
            "        return await self._own.of((round_id, user))": "        return (await self._read_own([(round_id, user)])).get((round_id, user))"
        },
        caught_by=f"{_CROWDS}::test_all_who_ask_for_their_own_entry_are_a_few_queries_and_each_sees_only_that",
    ),
    Mutant(
        name="Streams that end together come back together",
        trap="ours",
        path="web/live_updates/event_stream.py",
        edits={"% random.randint(RETRY_MS_MIN, RETRY_MS_MAX)": "% RETRY_MS_MIN"},
        caught_by="tests/api/test_live.py::test_streams_that_end_together_come_back_one_after_the_other",
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
        name="Who was taken off the list is served all the same",
        trap="ours",
        path="backends/sql/line_guests.py",
        edits={"dict.fromkeys(await _not_invited(connection, sale_id, entries), Outcome": "dict.fromkeys((), Outcome"},
        caught_by=f"{_GUESTS}::test_who_was_taken_off_the_list_is_passed_over_and_told",
    ),
    Mutant(
        name="Who has a unit at the gate is passed over, and nobody has it",
        trap="ours",
        path="engine/line/serving.py",
        edits={
            "            if not any(held.request_id.startswith(OF_LINE)": "            if True or any(held.request_id"
        },
        caught_by=f"{_GUESTS}::test_who_is_called_is_passed_over_unless_the_gate_has_given_them_a_unit[True]",
    ),
    Mutant(
        name="In a line, everybody of a household gets what one of them may have",
        trap="ours",
        path="engine/line/serving.py",
        edits={"e.item, person=e.person)": "e.item)"},
        caught_by=f"{_GUESTS}::test_a_household_is_one_buyer_in_a_line_as_well",
    ),
    Mutant(
        name="Somebody is served with an order that failed",
        trap="ours",
        path="backends/sql/line_serving.py",
        edits={"        not_(BURIED),\n": ""},
        caught_by=f"{_FAILED}::test_who_was_admitted_before_the_gate_forgot_is_served_again[valkey-1]",
    ),
    Mutant(
        name="Whose order failed gets no other",
        trap="ours",
        path="engine/line/serving.py",
        edits={"e.request_id(attempt), ": "e.request_id(), "},
        caught_by=f"{_FAILED}::test_who_was_admitted_before_the_gate_forgot_is_served_again[valkey-2]",
    ),
    Mutant(
        name="A draw takes a beacon that was known before its list",
        trap="ours",
        path="domain/beacon.py",
        edits={"after_ms // (1000 * self.period_s) + 2)": "after_ms // (1000 * self.period_s) + 1)"},
        caught_by=f"{_BEACON}::test_the_first_value_after_the_list_is_taken_and_nobody_chooses",
    ),
    Mutant(
        name="An operator chooses the beacon where a source was announced",
        trap="ours",
        path="backends/sql/lines.py",
        edits={"    if line.beacon_from is not None:\n        raise": "    if False:\n        raise"},
        caught_by=f"{_BEACON}::test_the_first_value_after_the_list_is_taken_and_nobody_chooses",
    ),
    Mutant(
        name="A beacon is given up whenever it fails once",
        trap="ours",
        path="backends/sql/line_draws.py",
        edits={" or now_ms < line.beacon_from.given_up_ms(_listed_ms(line)):": ":"},
        caught_by=f"{_BEACON}::test_a_source_that_does_not_answer_is_asked_again_told_of_and_given_up_in_the_time_that_was_announced",
    ),
    Mutant(
        name="A beacon's answer may be of another number",
        trap="ours",
        path="backends/door/beacon_reader.py",
        edits={"        if found.round != number:": "        if False:"},
        caught_by=f"{_BEACON}::test_what_is_not_the_value_is_no_answer[_other_number]",
    ),
    Mutant(
        name="A receipt is good for any round",
        trap="ours",
        path="domain/receipt.py",
        edits={'f"receipt {head}"': "f\"receipt {head.rpartition('.')[0]}\""},
        caught_by=f"{_API}::test_a_receipt_of_the_server_is_what_the_check_understands",
    ),
    Mutant(
        name="Who joins with others gets the receipt of one of them",
        trap="ours",
        path="domain/receipt.py",
        edits={"zip(heads, steps, strict=True)": "zip(heads, reversed(steps), strict=True)"},
        caught_by="tests/domain/test_receipt.py::test_each_receipt_holds_by_itself_and_for_its_own_entry_only",
    ),
    Mutant(
        name="A receipt among others is good for any entry",
        trap="ours",
        path="client/draw_check.py",
        edits={
            "            node = sha256(signed.encode()).hexdigest()\n": '            node = sha256(f"{self.round}".encode()).hexdigest()\n'
        },
        caught_by="tests/cli/test_verify_draw.py::test_whoever_was_left_out_can_prove_it_to_a_stranger",
    ),
    Mutant(
        name="The check of a draw believes any receipt",
        trap="ours",
        path="client/draw_check.py",
        edits={"    if not receipt.holds(key):": "    if False:"},
        caught_by="tests/cli/test_verify_draw.py::test_whoever_was_left_out_can_prove_it_to_a_stranger",
    ),
    Mutant(
        name="What was told of an entry changes when its buyer joins again",
        trap="ours",
        path="backends/sql/feed.py",
        edits={"    if row.facts is not None:": "    if False:"},
        caught_by=f"{_API}::test_what_was_told_of_an_entry_stays_when_its_buyer_joins_again",
    ),
    Mutant(
        name="Who joins while more of the connection arrives joins twice",
        trap="ours",
        path="web/line/line_entries.py",
        edits={"    if BEGUN in request.scope:\n": "    if False:\n"},
        caught_by=f"{_WAYS}::test_more_arrives_while_a_join_is_on_its_way",
    ),
    Mutant(
        name="The quick way of joining passes over the door",
        trap="ours",
        path="web/line/line_join.py",
        edits={"            ctx.door.may_join(sale, buyer, headers.get(PASS))\n": ""},
        caught_by=f"{_WAYS}::test_what_is_not_plainly_right_is_refused_alike[bytes]",
    ),
    Mutant(
        name="The quick way of joining has no limit of an address",
        trap="ours",
        path="web/line/line_join.py",
        edits={"        if ctx.line.rate.wait_s(address, time.monotonic()):\n            return False\n": ""},
        caught_by=f"{_WAYS}::test_one_address_joins_as_often_as_it_may_whichever_way[bytes]",
    ),
    Mutant(
        name="Who waits believes that the gate has heard of the line",
        trap="ours",
        path="engine/line/joining.py",
        edits={"(sale.door.line.draws or sale.round.id in self._opened)": "True"},
        caught_by=f"{_API}::test_nobody_waits_while_units_still_go_to_whoever_presses",
    ),
    Mutant(
        name="A slip closes the list of a draw",
        trap="ours",
        path="domain/sale_change.py",
        edits={"    if moved and after.begins_ms <": "    if moved and after.ends_ms <"},
        caught_by="tests/domain/test_sale_change.py::test_a_draw_is_not_moved_into_the_past",
    ),
    Mutant(
        name="A draft is published whose draw is over",
        trap="ours",
        path="domain/sale_change.py",
        edits={"    return entries > 0 or not is_draw": "    return entries >= 0 or not is_draw"},
        caught_by=f"{_SQL}::test_a_draft_whose_draw_is_over_is_not_published[sqlite]",
    ),
)
