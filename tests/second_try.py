"""Runs the tests that failed in `make test` once more, alone.

Three tests at a time share two cores with some twenty servers. One that fails beside others and passes alone is
unsteady: the run says so, and whoever reads it mends the test or finds the race. More failures than a few are no noise,
and there is no second try.
"""

import json
import subprocess
import sys
from pathlib import Path

FEW = 5
TESTS_FAILED = 1  # pytest's code; any other means that the run itself went wrong


def failures(root: Path) -> list[str]:
    found = root / ".pytest_cache" / "v" / "cache" / "lastfailed"
    return sorted(json.loads(found.read_text(encoding="utf-8"))) if found.exists() else []


def second_try(code: int, root: Path) -> int:
    """The code to exit with."""
    failed = failures(root)
    if code != TESTS_FAILED or not 0 < len(failed) <= FEW:
        return code
    print(f"\nOnce more, alone: {', '.join(failed)}\n", flush=True)
    again = [sys.executable, "-m", "pytest", "--last-failed", "--last-failed-no-failures=none"]
    code = subprocess.run(again, cwd=root, check=False).returncode
    unsteady = [name for name in failed if name not in failures(root)]
    for name in unsteady:
        print(f"UNSTEADY {name}: it failed beside other tests and passed alone. Mend it.", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(second_try(int(sys.argv[1]), Path.cwd()))
