"""Runs a command that dies with the process that started it, even when that process is killed with -9.

Run as a script, `python -I -S tether.py PARENT_PID -- COMMAND ARGS…`; `tethered()` gives that command line.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Sequence

# How often the supervisor checks its parent and its command, where the kernel cannot do that.
SUPERVISOR_POLL_S = 0.2

EXIT_PARENT_GONE = 1
EXIT_CANNOT_RUN = 127  # as a shell says it


def tethered(command: Sequence[str]) -> list[str]:
    """What to pass to subprocess, from the main thread, so that `command` dies with this process.

    Linux ties the death signal to the *thread* that forks: started from another thread, the command is
    killed as soon as that thread ends.
    """
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), "--", *command]


def main(arguments: Sequence[str]) -> int:
    parent_pid, _separator, *command = arguments
    # Ctrl-C goes to every process of the terminal's foreground group; the parent decides when to stop us.
    # Refused when the parent has already given us a session of our own.
    with contextlib.suppress(PermissionError):
        os.setsid()
    killed_with_parent = kill_me_with_my_parent()
    # Asked only now: a parent that died before the line above took effect will never be announced to us.
    if os.getppid() != int(parent_pid):
        return EXIT_PARENT_GONE
    try:
        if killed_with_parent:
            os.execvp(command[0], command)  # noqa: S606 (no shell is wanted); the death signal survives exec
        return supervise(int(parent_pid), command)
    except OSError as error:
        sys.stderr.write(f"{command[0]} could not be run: {error.strerror}\n")
        return EXIT_CANNOT_RUN


def kill_me_with_my_parent() -> bool:
    """Asks the kernel to kill this process when its parent ends; False where that cannot be had."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes  # noqa: PLC0415 (not every Python is built with it)
    except ImportError:
        return False
    pr_set_pdeathsig = 1
    refused: int = ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)
    return refused == 0


def supervise(parent_pid: int, command: Sequence[str]) -> int:
    """Stays beside the command, passes on signals, and kills it when the parent is gone (macOS).

    To kill it, kill the process group: a supervisor killed with -9 cannot take the command along.
    """
    import subprocess  # noqa: PLC0415 (not needed on Linux, where starting quickly counts)

    received: list[int] = []
    # Before the command starts: a signal in between would end the supervisor and leave the command behind.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: received.append(number))
    child = subprocess.Popen(command)  # noqa: S603 (the command is the caller's own)
    while True:
        try:
            code = child.wait(SUPERVISOR_POLL_S)
        except subprocess.TimeoutExpired:
            while received:
                child.send_signal(received.pop(0))
            if os.getppid() != parent_pid:
                child.kill()
        else:
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
