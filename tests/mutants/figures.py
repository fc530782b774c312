"""Flaws of what operators look back at."""

from tests.mutants.mutant import Mutant

_FIGURES = "tests/backends/sql/test_figures.py"
_BACK = "tests/api/test_looking_back.py"

MUTANTS = (
    Mutant(
        name="A timeline has the sale's newest rounds instead of those of its time",
        trap="ours",
        path="backends/sql/sales.py",
        edits={"where(sales.c.id == sale_id, or_(begins, ends))": "where(sales.c.id == sale_id)"},
        caught_by="tests/backends/sql/test_history.py::test_the_rounds_of_a_sale_newest_first[sqlite]",
    ),
    Mutant(
        name="A chart's seconds are forgotten around the sell-out",
        trap="ours",
        path="engine/rounds/figure_keeping.py",
        edits={
            "            await self._figures.spare(round_id, at_s - BEFORE_SOLD_OUT_S, at_s)\n": "",
        },
        caught_by=f"{_BACK}::test_seconds_before_the_sell_out_stay_and_others_are_fine",
    ),
    Mutant(
        name="What happened in a second is spread over those in which nothing did",
        trap="ours",
        path="engine/rounds/figure_keeping.py",
        edits={
            "        if last is not None and reading.at_s - last.at_s > 1 and not _same(last, reading):\n": (
                "        if last is None:\n"
            ),
            "            self._waiting.append(replace(last, at_s=reading.at_s - 1, fine=not stays))\n": (
                "            pass\n"
            ),
        },
        caught_by=f"{_BACK}::test_what_changes_is_kept_and_a_minute_in_any_case",
    ),
    Mutant(
        name="A process that goes away takes refusals back",
        trap="ours",
        path="backends/sql/figures.py",
        edits={"max(0, many - before.get(reason, 0))": "many - before.get(reason, 0)"},
        caught_by=f"{_FIGURES}::test_refusals_are_added_up_and_a_process_that_goes_takes_nothing_back",
    ),
    Mutant(
        name="Refusals count twice after the board was lost",
        trap="ours",
        path="engine/rounds/report_memory.py",
        edits={"if at_s - seen_s < REMEMBERED_S": "if at_s == seen_s"},
        caught_by=f"{_BACK}::test_a_board_that_was_lost_doubles_no_refusal",
    ),
    Mutant(
        name="Refunded money counts as revenue",
        trap="ours",
        path="web/console/looking_back.py",
        edits={"net_cents=each.taken_cents - each.refunded_cents": "net_cents=each.taken_cents"},
        caught_by=f"{_BACK}::test_what_came_of_it",
    ),
    Mutant(
        name="An alarm of a process that is gone lasts for ever",
        trap="ours",
        path="backends/sql/alarm_book.py",
        edits={", _a.told_ms >= database.now_ms - STALE_AFTER_MS)": ")"},
        caught_by=f"{_FIGURES}::test_a_lasting_alarm_that_nobody_renews_is_not_on",
    ),
    Mutant(
        name="An operator's change is told twice in a timeline",
        trap="ours",
        path="engine/rounds/timeline.py",
        edits={" if not _is_on_record(event, entries)]": "]"},
        caught_by=f"{_BACK}::test_a_sale_has_a_timeline_with_who_did_what",
    ),
)
