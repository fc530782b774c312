"""What the exit code of a command says."""

EXIT_HOLDS = 0
# Of a command that judges: what it has looked at is not as it should be.
EXIT_BROKEN = 1
# Of any other: it failed.
EXIT_FAILED = 1
EXIT_SETTINGS = 2
EXIT_USAGE = 2
# Of a command that judges: it could not tell.
EXIT_UNSURE = 2
EXIT_INTERRUPTED = 130

# 1 means that something was found broken, so never their own failure.
JUDGES = ("audit", "repair", "chaos", "rehearse", "verify-draw")


def of_own_failure(command: str | None) -> int:
    """When the command itself failed, such as for want of a database."""
    return EXIT_UNSURE if command in JUDGES else EXIT_FAILED
