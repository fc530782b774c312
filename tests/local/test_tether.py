import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from seckill.local import tether
from seckill.local.tether import tethered
from tests.local.processes import cleared, eventually, running
from tests.patience import PATIENCE_S

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(code), *arguments]


def test_the_command_s_output_and_exit_code_come_through() -> None:
    done = subprocess.run(tethered(python("import sys; print('out'); sys.exit(7)")), capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("out\n", 7)


@pytest.mark.parametrize("new_session", [True, False])
def test_the_command_has_a_session_of_its_own(new_session: bool) -> None:
    with subprocess.Popen(tethered(SLEEP), start_new_session=new_session) as child, cleared(child.pid):
        assert eventually(lambda: os.getsid(child.pid) == child.pid)


def test_a_parent_that_is_already_gone_means_no_start(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    not_our_pid = str(os.getppid())
    line = tethered(python("import sys, pathlib; pathlib.Path(sys.argv[1]).touch()", str(mark)))
    line[line.index("--") - 1] = not_our_pid
    assert subprocess.run(line).returncode == tether.EXIT_PARENT_GONE
    assert not mark.exists()


def test_a_command_that_does_not_exist_is_one_line() -> None:
    done = subprocess.run(tethered(["/nowhere/server"]), capture_output=True, text=True)
    assert done.returncode == tether.EXIT_CANNOT_RUN
    assert done.stderr == "/nowhere/server could not be run: No such file or directory\n"


def test_the_command_dies_with_a_killed_parent() -> None:
    parent = """
        import subprocess, sys, time
        from seckill.local.tether import tethered
        code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
        subprocess.Popen(tethered([sys.executable, "-c", code]), start_new_session=True)
        time.sleep(600)
    """
    with subprocess.Popen(python(parent), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert running(pid)
        process.kill()
    with cleared(pid):
        assert eventually(lambda: not running(pid))


# The way of macOS, which works everywhere.
SUPERVISOR = """
    import os, sys
    from seckill.local import tether
    tether.kill_me_with_my_parent = lambda: False
    sys.exit(tether.main(sys.argv[1:]))
"""


def supervised(command: list[str], parent_pid: int | None = None) -> list[str]:
    return python(SUPERVISOR, str(parent_pid or os.getpid()), "--", *command)


def test_supervised_the_exit_code_comes_through() -> None:
    assert subprocess.run(supervised(python("import sys; sys.exit(7)"))).returncode == 7


def test_supervised_a_killed_command_is_told_as_a_shell_does() -> None:
    killed = python("import os; os.kill(os.getpid(), 9)")
    assert subprocess.run(supervised(killed)).returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_supervised_signals_are_passed_on(number: signal.Signals) -> None:
    command = """
        import signal, sys, time
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, frame: sys.exit(number + 40))
        print("there", flush=True)
        time.sleep(600)
    """
    with subprocess.Popen(supervised(python(command)), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == number + 40


def test_supervised_the_command_dies_with_a_killed_parent() -> None:
    parent = f"""
        import os, subprocess, sys, time
        supervisor = {textwrap.dedent(SUPERVISOR)!r}
        code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
        command = [sys.executable, "-c", code]
        subprocess.Popen([sys.executable, "-c", supervisor, str(os.getpid()), "--", *command])
        time.sleep(600)
    """
    with subprocess.Popen(python(parent), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert running(pid)
        process.kill()
    with cleared(pid):
        assert eventually(lambda: not running(pid))


def test_supervised_a_parent_that_is_already_gone_means_no_start(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    touch = python("import sys, pathlib; pathlib.Path(sys.argv[1]).touch()", str(mark))
    assert subprocess.run(supervised(touch, os.getppid())).returncode == tether.EXIT_PARENT_GONE
    assert not mark.exists()
