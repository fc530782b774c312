"""Flaws of the ledger: its tables, how orders are written, and how they end."""

from tests.mutants.mutant import SIMULATION, Mutant

TABLES = "backends/sql/migrations/versions/r0001_first.py"
ROUNDS_OF_ORDERS = "backends/sql/migrations/versions/r0025_rounds_of_orders.py"
RECORDING = "backends/sql/record_orders.py"
ENDINGS = "backends/sql/end_orders.py"
LETTERS = "backends/sql/dead_letters.py"

MUTANTS = (
    Mutant(
        name="What a transaction sees is up to PostgreSQL's default",
        trap="ours",
        path="backends/sql/postgres.py",
        edits={'    "default_transaction_isolation": "read committed",\n': ""},
        caught_by="tests/backends/sql/test_postgres.py::"
        "test_what_a_transaction_sees_is_the_same_whatever_the_default[serializable]",
    ),
    Mutant(
        name="A database that may lose what it has committed is written to",
        trap="ours",
        path="backends/sql/mysql.py",
        edits={"            _check_flush((await cursor.fetchone())[0])\n": ""},
        caught_by="tests/backends/sql/test_mysql.py::test_a_server_that_may_lose_what_it_has_committed_is_not_written_to[0]",
    ),
    Mutant(
        name="A PostgreSQL that may lose what it has committed is written to",
        trap="ours",
        path="backends/sql/postgres.py",
        edits={"""        _check_sync(await connection.fetchval("SELECT current_setting('fsync')"))\n""": ""},
        caught_by="tests/backends/sql/test_postgres.py::test_a_server_that_may_lose_what_it_has_committed_is_not_written_to",
    ),
    Mutant(
        name="A connection that the server ends while it is made is an error of ours",
        trap="ours",
        path="backends/sql/postgres.py",
        edits={"if isinstance(behind, asyncpg.InternalClientError):": "if False:"},
        caught_by="tests/backends/sql/test_postgres.py::test_a_connection_that_the_server_ends_while_it_is_made",
    ),
    Mutant(
        name="A statement that was prepared before its table was changed is an error of ours",
        trap="ours",
        path="backends/sql/postgres.py",
        edits={"if isinstance(behind, asyncpg.InvalidCachedStatementError):": "if False:"},
        caught_by="tests/backends/sql/test_postgres.py::test_a_table_that_is_changed_while_it_is_in_use",
    ),
    Mutant(
        name="A database in which most names cannot be written is taken",
        trap="ours",
        path="backends/sql/postgres.py",
        edits={"        _check_encoding(connection.get_settings().server_encoding)\n": ""},
        caught_by="tests/backends/sql/test_postgres.py::test_a_database_that_cannot_keep_every_name[LATIN1]",
    ),
    Mutant(
        name="More may be sold than there is",
        trap="F26",
        path=TABLES,
        edits={"sold >= 0 AND sold <= total": "sold >= 0"},
        caught_by="tests/backends/sql/test_constraints.py::test_forbidden[sqlite-more sold than there is]",
    ),
    Mutant(
        name="A buyer's slot is not unique",
        trap="F27",
        path=TABLES,
        edits={
            '        sa.UniqueConstraint("round_id", "user_id", "active_slot", name="uq_orders_round_id_user_id_active_slot"),\n': ""
        },
        caught_by="tests/backends/sql/test_races.py::test_fifty_orders_of_one_buyer_at_once_are_one[sqlite]",
    ),
    Mutant(
        name="An order that another worker writes at the same instant is refused",
        trap="ours",
        path="backends/sql/ledger.py",
        edits={"if error.__cause__ is None:  # we refused it ourselves": "if True:"},
        caught_by="tests/backends/sql/test_races.py::"
        "test_an_order_that_another_worker_writes_at_the_same_instant_is_no_refusal[sqlite]",
    ),
    Mutant(
        name="On SQLite, a known order in a large batch hides that the orders before it are new",
        trap="ours",
        path="backends/sql/sqlite_orders.py",
        edits={'                    await connection.execute(self._delete, {"listed": [row[0] for row in new]})\n': ""},
        caught_by="tests/backends/sql/test_record.py::test_one_order_of_a_large_batch_is_known[sqlite-150]",
    ),
    Mutant(
        name="On SQLite, orders of a batch are written with the quantity of the first one",
        trap="ours",
        path="backends/sql/sqlite_orders.py",
        edits={"_kind = itemgetter(1, 3, 6)": "_kind = itemgetter(1, 6)"},
        caught_by="tests/backends/sql/test_record.py::test_orders_of_many_kinds_in_one_batch[sqlite-5]",
    ),
    Mutant(
        name="On PostgreSQL, an order of no round is written",
        trap="ours",
        path=ROUNDS_OF_ORDERS,
        edits={"IF present < cardinality(named) THEN": "IF present = 0 THEN"},
        caught_by="tests/backends/sql/test_constraints.py::test_forbidden[postgres-of two new ones, one is an order of no round]",
    ),
    Mutant(
        name="On PostgreSQL, a round goes while an order of it is written",
        trap="ours",
        path=ROUNDS_OF_ORDERS,
        edits={"WHERE id = ANY (named) ORDER BY id FOR KEY SHARE": "WHERE id = ANY (named) ORDER BY id"},
        caught_by="tests/backends/sql/test_postgres.py::test_no_round_goes_while_an_order_of_it_is_written",
    ),
    Mutant(
        name="A release may be decided twice",
        trap="F53",
        path=TABLES,
        edits={'        sa.UniqueConstraint("kind", "order_id", name="uq_outbox_kind_order_id"),\n': ""},
        caught_by="tests/backends/sql/test_constraints.py::test_forbidden[sqlite-a release decided twice]",
    ),
    Mutant(
        name="The id of a deleted round comes back",
        trap="F67",
        path=TABLES,
        edits={'name="fk_rounds_sale_id"),\n        sqlite_autoincrement=True,\n': 'name="fk_rounds_sale_id"),\n'},
        caught_by="tests/backends/sql/test_constraints.py::test_the_id_of_a_round_never_comes_back[sqlite]",
    ),
    Mutant(
        name="An occurrence of a sale may become two rounds",
        trap="F69",
        path=TABLES,
        edits={'        sa.UniqueConstraint("sale_id", "scheduled_ms", name="uq_rounds_sale_id_scheduled_ms"),\n': ""},
        caught_by="tests/backends/sql/test_constraints.py::test_forbidden[sqlite-two rounds for one occurrence of a sale]",
    ),
    Mutant(
        name="A payment may be noted twice",
        trap="S26",
        path=TABLES,
        edits={
            '        sa.UniqueConstraint("provider", "provider_ref", name="uq_payments_provider_provider_ref"),\n': ""
        },
        caught_by="tests/backends/sql/test_constraints.py::test_forbidden[sqlite-one payment for two orders]",
    ),
    Mutant(
        name="Units are counted without looking how many are left",
        trap="F25",
        path=RECORDING,
        edits={
            ".where(rounds.c.sold + units <= rounds.c.total, rounds.c.retired_ms.is_(None))": ".where(rounds.c.retired_ms.is_(None))"
        },
        caught_by="tests/backends/sql/test_record.py::test_one_order_more_than_there_are_units[sqlite]",
    ),
    Mutant(
        name="A row that was not changed is not noticed",
        trap="F26",
        path=RECORDING,
        edits={"if taken.rowcount != 1:": "if taken.rowcount > 1:"},
        caught_by="tests/backends/sql/test_races.py::test_two_hundred_orders_for_a_hundred_units_sell_exactly_a_hundred[sqlite]",
    ),
    Mutant(
        name="Orders of a void epoch are written",
        trap="F51",
        path=RECORDING,
        edits={
            ', rounds.c.epoch == bindparam("of_epoch"))': ', bindparam("of_epoch", type_=Integer) == bindparam("of_epoch"))'
        },
        caught_by="tests/api/test_rebuild.py::test_entries_of_the_old_epoch_do_no_harm",
    ),
    Mutant(
        name="Orders are written to a round that is retired",
        trap="F67",
        path=RECORDING,
        edits={" <= rounds.c.total, rounds.c.retired_ms.is_(None))": " <= rounds.c.total)"},
        caught_by="tests/api/test_retirement.py::test_nothing_is_written_to_a_retired_round[sqlite]",
    ),
    Mutant(
        name="An order that is there already is a failure",
        trap="F65",
        path=RECORDING,
        edits={
            "        else:\n            states = await": '        else:\n            raise LedgerRefused("It is there already.")\n'
            "            states = await"
        },
        caught_by="tests/backends/sql/test_record.py::test_one_entry_delivered_50_times_is_one_row[sqlite]",
    ),
    Mutant(
        name="Whatever has the same number is the same order",
        trap="F33",
        path=RECORDING,
        edits={"            is_same = same == [row": "            is_same = row.id == row.id or same == [row"},
        caught_by="tests/backends/sql/test_record.py::test_a_known_number_with_other_content_is_never_success[sqlite-user]",
    ),
    Mutant(
        name="An order is written without its event",
        trap="F32",
        path="backends/sql/statements.py",
        edits={"            await connection.execute(self._insert_events, happened)\n": ""},
        caught_by="tests/audit/test_sound.py::test_orders_in_every_state[sqlite]",
    ),
    Mutant(
        name="On PostgreSQL, an order is written without its event",
        trap="F32",
        path="backends/sql/postgres.py",
        edits={'add_cte(events.cte("events"), entries': "add_cte(entries"},
        caught_by="tests/backends/sql/test_record.py::test_writes_the_whole_order[postgres]",
    ),
    Mutant(
        name="The time to pay counts from the application's clock",
        trap="F22",
        path=RECORDING,
        edits={
            "from typing import Any\n": "import time\nfrom typing import Any\n",
            "else_=now_ms + sales.c.pay_within_s": "else_=literal(int(time.time() * 1000), BigInteger) + sales.c.pay_within_s",
        },
        caught_by="tests/backends/sql/test_record.py::test_the_application_clock_decides_nothing[sqlite]",
    ),
    Mutant(
        name="An order ends whatever state it is in",
        trap="F52",
        path=ENDINGS,
        edits={'"numbers"), orders.c.state == before)': '"numbers"), orders.c.state != OrderState.FAILED)'},
        caught_by="tests/backends/sql/test_endings.py::test_pay_cancel_and_expire_at_the_same_instant_have_one_winner[sqlite]",
        also=(SIMULATION,),
    ),
    Mutant(
        name="A paid order may be cancelled",
        trap="F52",
        path="domain/order.py",
        edits={
            "    OrderState.PAID: frozenset({OrderState.REFUNDED}),\n": "    OrderState.PAID: frozenset({OrderState.REFUNDED, OrderState.CANCELLED}),\n"
        },
        caught_by="tests/domain/test_states.py::test_the_legal_ways_of_an_order_are_these_and_no_others",
        also=(
            "tests/backends/sql/test_endings.py::test_pay_cancel_and_expire_at_the_same_instant_have_one_winner[sqlite]",
        ),
    ),
    Mutant(
        name="Money goes back for an order in whatever state it is",
        trap="F52",
        path=ENDINGS,
        edits={"row is None or row.state not in OVER.intersection(_rows_before(OrderState.REFUNDED))": "row is None"},
        caught_by="tests/backends/sql/test_transitions.py::test_no_way_leads_where_the_domain_has_none[sqlite-give_back-refunded]",
    ),
    Mutant(
        name="An order ends and its release is not decided with it",
        trap="F53",
        path=ENDINGS,
        edits={
            '        await connection.execute(self._insert_outbox, self._changed.bind(changed) | {"kind": kind})\n': "        return\n"
        },
        caught_by="tests/backends/sql/test_endings.py::test_cancelled[sqlite]",
        also=(SIMULATION,),
    ),
    Mutant(
        name="The release is committed before the order's end",
        trap="F53",
        path=ENDINGS,
        edits={
            '        await connection.execute(self._insert_outbox, self._changed.bind(changed) | {"kind": kind})\n': "        async with self._database.writers.begin() as first:\n"
            '            await first.execute(self._insert_outbox, self._changed.bind(changed) | {"kind": kind})\n'
        },
        caught_by="tests/backends/sql/test_endings.py::test_an_end_that_is_not_committed_leaves_no_release[postgres]",
    ),
    Mutant(
        name="An order that is over keeps its slot",
        trap="F66",
        path=ENDINGS,
        edits={"null(), ": "orders.c.active_slot, "},
        caught_by="tests/backends/sql/test_endings.py::test_the_slot_is_free_again[sqlite]",
    ),
    Mutant(
        name="Units of orders that are over still count as sold",
        trap="F15",
        path=ENDINGS,
        edits={"sold=rounds.c.sold - bindparam": "sold=rounds.c.sold - 0 * bindparam"},
        caught_by="tests/backends/sql/test_endings.py::test_cancelled[sqlite]",
        also=(SIMULATION,),
    ),
    Mutant(
        name="Orders expire by the application's clock",
        trap="F54",
        path=ENDINGS,
        edits={
            "from collections import Counter\n": "import time\nfrom collections import Counter\n",
            "orders.c.expires_ms <= database.now_ms,": "orders.c.expires_ms <= int(time.time() * 1000) + 3_600_000,",
        },
        caught_by="tests/backends/sql/test_endings.py::test_expired_by_the_databases_clock[sqlite]",
    ),
    Mutant(
        name="An order is given up although a worker has written it",
        trap="F64",
        path=LETTERS,
        edits={
            "            return await _state_of(connection, admission)\n": "            await connection.execute("
            '_decided(), {"order": int(admission.number), "of_round": admission.round_id, "at_ms": 1})\n'
            "            return await _state_of(connection, admission)\n"
        },
        caught_by="tests/backends/sql/test_letters.py::test_a_commit_that_was_quicker_is_not_failed[sqlite]",
    ),
    Mutant(
        name="An order that was given up gives nothing back",
        trap="F15",
        path=LETTERS,
        edits={
            '        await connection.execute(_decided(), {"order": row.id, "of_round": row.round_id, "at_ms": row.recorded_ms})\n': ""
        },
        caught_by="tests/backends/sql/test_letters.py::test_after_the_last_try_it_is_failed_released_and_dead[sqlite]",
    ),
    Mutant(
        name="Two keepers count two tries of one letter",
        trap="F36",
        path=LETTERS,
        edits={"            dead_letters.c.attempts == letter.attempts,\n": ""},
        caught_by="tests/backends/sql/test_letters.py::test_two_keepers_with_the_same_letter_count_one_try[sqlite]",
    ),
    Mutant(
        name="Another buyer's order can be cancelled",
        trap="S8",
        path="backends/sql/ledger.py",
        edits={"if row is not None and row.user_id == user else None": "if row is not None else None"},
        caught_by="tests/backends/sql/test_endings.py::test_another_buyers_order_is_left_alone[sqlite]",
    ),
    Mutant(
        name="Several keepers each add the next round",
        trap="F69",
        path="backends/sql/sales.py",
        edits={
            "if newest.round.id != after.id or not may_go_on(newest, begins_ms):": "if newest.round.status is RoundStatus.CLOSED:"
        },
        caught_by="tests/backends/sql/test_repetition.py::test_three_keepers_over_midnight_while_the_clocks_change[sqlite]",
    ),
    Mutant(
        name="A commit on SQLite is not on the disk",
        trap="F72",
        path="backends/sql/sqlite_writer_lock.py",
        edits={"PRAGMA synchronous = FULL": "PRAGMA synchronous = OFF"},
        caught_by="tests/backends/sql/test_sqlite.py::test_settings_of_the_connections",
    ),
    Mutant(
        name="A commit on PostgreSQL is not on the disk",
        trap="F72",
        path="backends/sql/postgres.py",
        edits={"WHERE current_setting('synchronous_commit') = 'off'": "WHERE false"},
        caught_by="tests/backends/sql/test_postgres.py::test_commits_are_on_the_disk_whatever_the_default[off-on]",
    ),
    Mutant(
        name="A round is retired although its end was moved",
        trap="ours",
        path="backends/sql/retire_rounds.py",
        edits={"        rounds.c.ends_ms < now_ms,\n": ""},
        caught_by="tests/api/test_retirement.py::test_a_round_that_an_operator_changes_meanwhile_is_not_retired[sqlite]",
    ),
    Mutant(
        name="A round is retired although the gate has older rules",
        trap="ours",
        path="backends/sql/retire_rounds.py",
        edits={
            "        rounds.c.ends_ms < now_ms,\n        rounds.c.synced_revision == rounds.c.revision,\n": "        rounds.c.ends_ms < now_ms,\n"
        },
        caught_by="tests/api/test_retirement.py::test_a_round_that_an_operator_changes_meanwhile_is_not_retired[sqlite]",
    ),
    Mutant(
        name="The newest orders of a quiet sale are looked for among those of all sales",
        trap="ours",
        path="backends/sql/postgres.py",
        edits={
            "in_range = found.where(pair >= tuple_(fixed, least), pair < tuple_(fixed, below))": "in_range = found.where("
            "column == value, key >= least, key < below)",
            "return in_range.order_by(column.desc(), key.desc())": "return in_range.order_by(key.desc())",
        },
        caught_by="tests/backends/sql/test_history.py::test_the_newest_orders_of_a_quiet_sale_beside_a_busy_one[postgres]",
    ),
    Mutant(
        name="What a shop says of a claim is lost in a rebuild",
        trap="ours",
        path="engine/orders/order_recovery.py",
        edits={"structs.replace(live, metadata=queued.metadata)": "live"},
        caught_by="tests/api/test_claim_metadata.py::test_metadata_survive_a_rebuild",
    ),
    Mutant(
        name="What a shop says of a claim is written over by a repeat",
        trap="ours",
        path="backends/sql/record_orders.py",
        edits={", type_=BigInteger), orders.c.metadata.is_(None))": ", type_=BigInteger))"},
        caught_by="tests/backends/sql/test_record.py::test_metadata_is_written_with_its_order_and_the_first_stays[sqlite]",
    ),
)
