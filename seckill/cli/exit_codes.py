"""What the exit codes of commands mean."""

EXIT_HOLDS = 0
# A command that judges has found something broken.
EXIT_BROKEN = 1
# Any other command has failed.
EXIT_FAILED = 1
EXIT_SETTINGS = 2
EXIT_USAGE = 2
# A command that judges could not tell.
EXIT_UNSURE = 2
EXIT_INTERRUPTED = 130

# Their exit code 1 means that something is broken, never that the command itself failed.
JUDGES = ("audit", "repair", "chaos", "rehearse", "verify-draw")


def of_own_failure(command: str | None) -> int:
    """Returns the exit code of a command that fails itself, for example because a database is away."""
    return EXIT_UNSURE if command in JUDGES else EXIT_FAILED
