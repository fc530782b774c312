"""Sets which roles go first when all share the cores of one machine: those nearest to the committed row.

An API process takes all the CPU time that it gets, and the other roles have to write what it accepts. So it gives way
to them and uses what they leave over: the more it took from them, the sooner the backlog would be full and buyers be
refused for that reason alone. If the database is slower than that for long, the backlog grows all the same.
"""

import contextlib
import os
from pathlib import Path

# Gives a third of the weight of processes that have not given way.
NICE = 5
# Where the kernel shares cores by session, and each role has one of its own, this is what counts.
SESSION = Path("/proc/self/autogroup")


def give_way() -> None:
    """Makes this process and its session give way to all others, for good."""
    os.nice(NICE)
    with contextlib.suppress(OSError):  # another kernel, or a container
        SESSION.write_text(str(NICE))
