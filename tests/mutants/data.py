"""Flaws of copies of everything: backups, a move to another database, one buyer's data."""

from tests.mutants.mutant import Mutant

_BACKUP = "tests/local/test_backup.py"
_RETENTION = "tests/backends/sql/test_retention.py"
_MOVE = "tests/operations/test_ledger_move.py"
_GONE = "tests/api/test_buyer_data.py::test_a_buyer_is_gone_and_the_books_hold[sqlite]"
_UNDER_LOAD = "tests/e2e/test_backup.py::test_a_copy_made_under_load_is_whole"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="A backup copies ledger and gate at two different moments",
        trap="ours",
        path="local/backup.py",
        edits={"            async with writing(database):\n": "            async with contextlib.nullcontext():\n"},
        caught_by=_UNDER_LOAD,
    ),
    Mutant(
        name="A backup takes the gate's file without what was just answered",
        trap="ours",
        path="local/gate_file.py",
        edits={"not _is_in(last, mark, before.get(last.name, 0)) or ": ""},
        caught_by=f"{_BACKUP}::test_a_copy_waits_for_what_the_server_has_not_written_yet",
    ),
    Mutant(
        name="A restore takes a file that was changed",
        trap="ours",
        path="local/backup.py",
        edits={"intact = _digest(source / name) == expected": "intact = _digest(source / name).size >= 0"},
        caught_by=f"{_BACKUP}::test_a_broken_backup_is_refused_and_leaves_nothing",
    ),
    Mutant(
        name="A restore writes over a data folder",
        trap="ours",
        path="local/restore.py",
        edits={"    if found:\n": "    if not found:\n        return\n    if UNFINISHED in found:\n"},
        caught_by=f"{_BACKUP}::test_only_an_empty_folder_is_restored_into",
    ),
    Mutant(
        name="A folder that was half restored is started",
        trap="ours",
        path="local/data_folder.py",
        edits={"                _must_be_finished(path)\n": ""},
        caught_by=f"{_BACKUP}::test_nothing_starts_in_a_folder_that_was_half_restored",
    ),
    Mutant(
        name="A moved ledger gives out ids once more",
        trap="ours",
        path="backends/sql/move.py",
        edits={"        last = max(greatest, noted.get(table.name, 0))\n": "        last = greatest\n"},
        caught_by=f"{_MOVE}::test_everything_arrives_and_the_sale_goes_on[postgres]",
        also=(f"{_MOVE}::test_everything_arrives_and_the_sale_goes_on[mariadb]",),
    ),
    Mutant(
        name="A move takes what it has sent for what has arrived",
        trap="ours",
        path="backends/sql/move.py",
        edits={"if arrived != copied[table.name]:": "if arrived.rows != copied[table.name].rows:"},
        caught_by=f"{_MOVE}::test_what_has_not_arrived_as_it_was_is_noticed",
    ),
    Mutant(
        name="A move empties a database that is in use",
        trap="ours",
        path="backends/sql/move.py",
        edits={
            "if marked is None and found is not None:": "if marked is None and found is not None and table is meta:"
        },
        caught_by=f"{_MOVE}::test_a_database_with_rows_is_refused_and_left_alone",
    ),
    Mutant(
        name="A move migrates a database before it looks whether that is empty",
        trap="ours",
        path="operations/ledger_move.py",
        edits={
            "        await require_room(source, target)  # comes first: a database that is not ours must not be migrated either\n": "",
        },
        caught_by=f"{_MOVE}::test_a_database_of_an_earlier_version_is_not_even_migrated",
    ),
    Mutant(
        name="Processes start on the ledger that was moved away",
        trap="ours",
        path="backends/sql/ledger.py",
        edits={"        if MOVED in found:\n": "        if MOVED in found and MOVING in found:\n"},
        caught_by=f"{_MOVE}::test_everything_arrives_and_the_sale_goes_on[postgres]",
    ),
    Mutant(
        name="Processes start on a ledger that has arrived in part",
        trap="ours",
        path="backends/sql/ledger.py",
        edits={"        if MOVING in found:\n": "        if MOVED in found:\n"},
        caught_by=f"{_MOVE}::test_a_move_that_was_interrupted_is_run_again[postgres]",
    ),
    Mutant(
        name="A buyer is erased while the gate still counts by the name",
        trap="ours",
        path="backends/sql/buyer_data.py",
        edits={"        if hindrances:\n": "        if len(hindrances) > 9:\n"},
        caught_by=_GONE,
    ),
    Mutant(
        name="Events of money still name a buyer who was erased",
        trap="ours",
        path="backends/sql/buyer_data.py",
        edits={'        if facts.get("buyer") == user:\n': '        if facts.get("user") == user:\n'},
        caught_by=_GONE,
    ),
    Mutant(
        name="What a shop has said of the orders of a buyer outlives the erasure",
        trap="ours",
        path="backends/sql/buyer_data.py",
        edits={"found, user_id=pseudonym, metadata=None, person": "found, user_id=pseudonym, person"},
        caught_by=_GONE,
    ),
    Mutant(
        name="An order that is bought in the middle of an erasure loses its buyer",
        trap="ours",
        path="backends/sql/buyer_data.py",
        edits={"where(table.c.id.in_(ids))": "where(table.c.user_id == rows[0].user_id)"},
        caught_by="tests/api/test_buyer_data.py::test_what_is_bought_in_the_middle_of_it_keeps_its_name",
    ),
    Mutant(
        name="Who is on the list of a draw is renamed while it is read",
        trap="ours",
        path="backends/sql/buyer_data.py",
        edits={"or_(line_entries.c.state.in_(_IN_LINE), in_draw)": "line_entries.c.state.in_(_IN_LINE)"},
        caught_by="tests/backends/sql/test_lines.py::"
        "test_who_is_on_the_list_of_a_draw_keeps_their_name_until_it_is_made[sqlite]",
    ),
    Mutant(
        name="Who is on the list of a draw is renamed while another keeper reads it",
        trap="ours",
        path="backends/sql/buyer_data.py",
        edits={"or_(line_entries.c.place.is_(None), line_entries.c.place > 0)": "line_entries.c.place.is_(None)"},
        caught_by="tests/backends/sql/test_lines.py::"
        "test_who_is_on_the_list_of_a_draw_keeps_their_name_until_it_is_made[sqlite]",
    ),
    Mutant(
        name="A buyer who was erased is still on the lists",
        trap="ours",
        path="backends/sql/audience.py",
        edits={"        digests.remove(digest)\n": ""},
        caught_by=_GONE,
    ),
    Mutant(
        name="Letters go while the gate may still ask for them",
        trap="ours",
        path="backends/sql/retention.py",
        edits={"or_(rounds.c.id.is_(None), forgotten)": "or_(rounds.c.id.is_(None), rounds.c.id > 0)"},
        caught_by=f"{_RETENTION}::test_letters_go_when_all_is_decided_and_the_gate_has_forgotten[sqlite]",
    ),
    Mutant(
        name="Entries of a line go before the events that are read from them",
        trap="ours",
        path="engine/retention.py",
        edits={"max(lines_days, events_days)": "min(lines_days, events_days)"},
        caught_by=f"{_RETENTION}::test_lines_go_with_their_entries_and_not_before_their_events[sqlite]",
    ),
)
