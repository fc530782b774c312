"""Flaws that show when one version follows another, or on servers that are set up otherwise."""

from tests.mutants.mutant import Mutant

KEPT = "tests/upgrades/test_kept_versions.py"

MUTANTS = (
    Mutant(
        name="An older version starts on a gate that it cannot read",
        trap="ours",
        path="backends/redis/format_stamp.py",
        edits={"    if int(needs) > FORMAT:\n": "    if int(needs) < NEEDS:\n"},
        caught_by="tests/upgrades/test_stamps.py::test_what_a_newer_version_has_written_is_refused",
    ),
    Mutant(
        name="The format that a gate needs falls when an older version comes back",
        trap="ours",
        path="backends/redis/lua/stamp.lua",
        edits={"if needs <= (tonumber": "if needs == (tonumber"},
        caught_by="tests/upgrades/test_stamps.py::test_what_is_needed_rises_and_never_falls",
    ),
    Mutant(
        name="An older version starts on a database that it would misread",
        trap="ours",
        path="backends/sql/schema.py",
        edits={"        _must_know_enough(connection)\n": ""},
        caught_by="tests/backends/sql/test_migrations.py::test_a_database_that_this_version_would_misread[sqlite]",
    ),
    Mutant(
        name="A migration that others' work collides with is given up",
        trap="ours",
        path="backends/sql/migration.py",
        edits={"until_not_collided(partial(_step, database))": "_step(database)"},
        caught_by="tests/backends/sql/test_migrations.py::"
        "test_a_migration_that_collides_with_those_who_work_begins_again[postgres]",
    ),
    Mutant(
        name="A new version makes another thing of buyers' keys than the one before",
        trap="ours",
        path="domain/idempotency_key.py",
        edits={"idempotency_key.encode(), digest_size=8": "idempotency_key.encode(), digest_size=8, person=b'v2'"},
        caught_by=f"{KEPT}::test_keys_and_limits_are_recognised[0.2.0]",
    ),
    Mutant(
        name="A new version sets aside the entries that the one before has queued",
        trap="ours",
        path="ports/queue_entry.py",
        edits={"VERSION = 1\n": "VERSION = 2\n"},
        caught_by=f"{KEPT}::test_what_was_queued_is_written_and_what_was_begun_is_finished[0.2.0]",
    ),
    Mutant(
        name="A release demands of a gate what the release before cannot read",
        trap="ours",
        path="backends/redis/format_stamp.py",
        edits={"NEEDS = 1\n": "NEEDS = 2\n"},
        caught_by="tests/upgrades/test_rolling.py::test_there_and_back_under_load",
    ),
    Mutant(
        name="A user without the right to EXEC is let in",
        trap="ours",
        path="backends/redis/command_rights.py",
        edits={'(*commands, ("DISCARD",), ("EXEC",)), (*replies, executed)': "commands, replies[:-1]"},
        caught_by="tests/deploy/test_acl.py::test_each_right_that_is_missing_is_named_at_the_start[valkey]",
    ),
    Mutant(
        name="A broker whose certificate is not believed is waited for",
        trap="ours",
        path="backends/rabbitmq/connections.py",
        edits={"isinstance(cause, ssl.SSLCertVerificationError)": "isinstance(cause, ssl.SSLZeroReturnError)"},
        caught_by="tests/deploy/test_tls.py::test_rabbitmq",
    ),
)
