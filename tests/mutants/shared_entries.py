"""Flaws of entries that have several orders, and of when they may be written."""

from tests.mutants.mutant import Mutant

_SHARED = "tests/backends/transport/test_shared_entries.py::"
_FORM = "tests/upgrades/test_entry_form.py::"

MUTANTS = (
    Mutant(
        name="Orders that share an entry count once",
        trap="ours",
        path="backends/redis/lua/admit.lua",
        edits={"backlog = backlog + more\n": "\n"},
        caught_by=_SHARED + "test_the_backlog_is_capped_by_orders[valkey]",
    ),
    Mutant(
        name="An entry is settled with the first of its orders",
        trap="ours",
        path="ports/transport.py",
        edits={" if n >= of[lane, entry_id]": ""},
        caught_by=_SHARED + "test_they_are_delivered_one_by_one_and_settled_together[memory]",
    ),
    Mutant(
        name="Settled orders of a shared entry go on counting",
        trap="ours",
        path="backends/redis/lua/settle.lua",
        edits={"math.max(0, more - shared)": "more"},
        caught_by=_SHARED + "test_they_are_delivered_one_by_one_and_settled_together[valkey]",
    ),
    Mutant(
        name="The count of a lost stream stays",
        trap="ours",
        path="backends/redis/lua/admit.lua",
        edits={"local more = backlog > 0 and tonumber(": "local more = tonumber("},
        caught_by=_SHARED + "test_a_stream_that_is_lost_takes_its_count_with_it[valkey]",
    ),
    Mutant(
        name="A worker settles an entry in parts",
        trap="ours",
        path="engine/orders/worker.py",
        edits={"end = _end_of_entry(deliveries, start + BATCH_MAX)": "end = start + BATCH_MAX"},
        caught_by="tests/engine/orders/test_worker.py::test_an_entry_is_never_settled_in_parts",
    ),
    Mutant(
        name="One order of an entry that cannot be understood takes the others with it",
        trap="ours",
        path="ports/queue_entry.py",
        edits={
            "    except (msgspec.MsgspecError, UnicodeDecodeError):\n        return _read_apart(lane, entry_id, payload)\n": (
                "    except (msgspec.MsgspecError, UnicodeDecodeError) as error:\n"
                "        return [Delivery(lane, entry_id, payload, None, str(error))]\n"
            )
        },
        caught_by=_SHARED + "test_one_that_cannot_be_understood_is_no_hindrance_to_the_others",
    ),
    Mutant(
        name="Entries are shared beside a version that cannot read them",
        trap="ours",
        path="backends/redis/streams.py",
        edits={"await self._entry_form() >= TOGETHER": "await self._entry_form() >= 0"},
        caught_by=_FORM + "test_beside_an_earlier_version_each_has_its_own",
    ),
    Mutant(
        name="An upgrade is finished while an earlier version runs",
        trap="ours",
        path="operations/upgrade_finish.py",
        edits={"if one.report.reads < TOGETHER": "if one.report.reads < 0"},
        caught_by=_FORM + "test_an_upgrade_is_not_finished_while_an_earlier_version_is_there",
    ),
    Mutant(
        name="The way back is free while entries are left that it cannot read",
        trap="ours",
        path="operations/upgrade_finish.py",
        edits={"while left := await forms.shared(every):": "while left := 0 * await forms.shared(every):"},
        caught_by=_FORM + "test_finished_and_back_again",
    ),
    Mutant(
        name="A late worker allows again what was forbidden for the way back",
        trap="ours",
        path="backends/redis/lua/share_entries.lua",
        edits={"if not form then": "if form ~= '2' then"},
        caught_by=_FORM + "test_a_worker_that_has_not_heard_of_the_way_back_allows_nothing",
    ),
)
