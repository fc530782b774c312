"""Who goes first where all roles share the cores of one machine: whoever is nearest to the committed row.

An API process takes whatever CPU time it gets, and what it accepts has to be written by the others. So it gives way to
them, and has what they leave over: the more it took from them, the sooner the backlog would be full, and people be
refused for no other reason. Where a database writes more slowly than that for long, the backlog grows all the same.
"""

import contextlib
import os
from pathlib import Path

# A third of the weight of those that have not given way.
NICE = 5
# Where the kernel shares cores by session, and each role has one of its own, this is what counts.
SESSION = Path("/proc/self/autogroup")


def give_way() -> None:
    """This process and its session, to all others, for good."""
    os.nice(NICE)
    with contextlib.suppress(OSError):  # another kernel, or a container
        SESSION.write_text(str(NICE))
