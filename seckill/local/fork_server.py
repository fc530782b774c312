"""Makes our roles as copies of one process that has loaded everything (Linux).

Loading takes a second of CPU, a copy milliseconds, and copies share the memory of what was loaded until they write to
it: Python counts references, so whatever is used is written to. The process that loads uses little of it afterwards.
The server is forked from it while there is no thread and no event loop yet, because neither survives a fork, and only
waits for requests; so these two share nearly all. Each role is handed over to the process that requested it, as its own
child: that process waits for the role as for any other, and the role dies with it. If the server fails in any way it
ends, and roles are spawned instead.
"""

import contextlib
import gc
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import structlog

from seckill.local.tether import kill_me_with_my_parent

log = structlog.get_logger()

ORDER_BYTES_MAX = 4096
# It takes a moment after the end of the process in the middle until the role has its new parent.
PARENT_POLL_S = 0.001
# Even on a busy machine, a healthy server needs a hundredth of this.
FORK_WITHIN_S = 10.0

Run = Callable[[Sequence[str]], object]


class Copy:
    """A role that the server made, with the part of `subprocess.Popen` that a supervisor needs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Returns the exit code; a negative one is the signal that killed the process."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:  # no other process gets its number until it has been waited for
            os.kill(self.pid, number)


class ForkServer:
    def __init__(self, pid: int, orders: socket.socket) -> None:
        self._pid = pid
        self._orders: socket.socket | None = orders

    def fork(self, arguments: Sequence[str], listener: int | None = None) -> Copy | None:
        """Makes a copy. Returns None if the server is gone. Blocks for a moment, so that no copy can be made and then
        forgotten because its starter was cancelled."""
        if self._orders is None:
            return None
        _adopt_orphans(True)
        try:
            self._orders.settimeout(FORK_WITHIN_S)
            fds = [] if listener is None else [listener]
            socket.send_fds(self._orders, [json.dumps(arguments).encode()], fds)
            said = self._orders.recv(32)
            if not said:
                raise ConnectionResetError
        except OSError:
            self._give_up()
            return None
        finally:
            _adopt_orphans(False)
        return Copy(int(said))

    def _give_up(self) -> None:
        log.warning("no copies of a loaded process can be made any more, starting roles takes longer")
        self.close()

    def close(self) -> None:
        """Ends the server. The roles that it made live on."""
        if self._orders is not None:
            os.kill(self._pid, signal.SIGKILL)  # it has nothing to finish, and would complain that no one listens
            os.waitpid(self._pid, 0)
            self._orders.close()
            self._orders = None


@contextlib.contextmanager
def fork_server(
    load: Callable[[], object], release: Callable[[], object], run: Run, environ: Mapping[str, str]
) -> Iterator[ForkServer | None]:
    """Yields None where the kernel cannot do it. `load` is called once, before the server is forked; `release` in the
    server, to let go of what it must not hold; `run` in each copy, with the arguments of its order and, at their end,
    the number of its listening socket if there is one. To be called from the main thread, while there is no other and
    no event loop."""
    if not _can_adopt_orphans():
        yield None
        return
    load()
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent_pid = os.getpid()
    gc.freeze()  # or the next collection would write to, and so copy, every page that has an object on it
    sys.stdout.flush()  # or the copies would write it once more
    pid = os.fork()
    if pid == 0:
        ours.close()
        _leave(lambda: _serve(its, parent_pid, release, run, environ))
    its.close()
    server = ForkServer(pid, ours)
    try:
        yield server
    finally:
        server.close()


def _serve(
    orders: socket.socket, parent_pid: int, release: Callable[[], object], run: Run, environ: Mapping[str, str]
) -> None:
    _become_a_child_of(parent_pid)
    rename_process("seckill", "fork-server")
    os.environ.clear()
    os.environ.update(environ)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    release()
    while True:
        order, fds, _flags, _address = socket.recv_fds(orders, ORDER_BYTES_MAX, maxfds=1)
        if not order:
            return
        # Twice: the role's parent ends at once, so that the role becomes a child of the process that requested it.
        middle = os.fork()
        if middle == 0:
            middle = os.getpid()
            if os.fork() == 0:
                _wait_until_gone(middle)
                _live(orders, parent_pid, [*json.loads(order), *map(str, fds)], run)
            return
        for fd in fds:
            os.close(fd)
        _pid, status = os.waitpid(middle, 0)
        if status:
            return


def _wait_until_gone(parent_pid: int) -> None:
    while os.getppid() == parent_pid:
        time.sleep(PARENT_POLL_S)


def _live(orders: socket.socket, parent_pid: int, arguments: Sequence[str], run: Run) -> None:
    _become_a_child_of(parent_pid)
    rename_process("seckill", arguments[0])
    orders.send(str(os.getpid()).encode())
    orders.close()
    run(arguments)


def _become_a_child_of(parent_pid: int) -> None:
    """Runs in a session of its own, because the parent handles Ctrl-C, and dies with the parent."""
    os.setsid()
    if not kill_me_with_my_parent() or os.getppid() != parent_pid:  # asked only afterwards, as in `tether.py`
        sys.exit(1)


def _leave(live: Callable[[], object]) -> NoReturn:
    """Runs the copy and exits without doing anything that the copied process was about to do: no `finally` or `with` of
    its stack."""
    code = 1
    try:
        live()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def rename_process(*words: str) -> None:
    """Sets what `ps` shows. A copy has the command line of the process from which it was copied."""
    import ctypes  # noqa: PLC0415 (not every Python is built with it)

    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[45]), int(fields[46])  # arg_start and arg_end, see proc(5)
    room = end - begin
    ctypes.memmove(begin, b"\0".join(word.encode() for word in words)[: room - 1].ljust(room, b"\0"), room)


def _can_adopt_orphans() -> bool:
    if sys.platform != "linux":
        return False
    try:
        return _adopt_orphans(True)
    except ImportError:
        return False
    finally:
        with contextlib.suppress(ImportError):
            _adopt_orphans(False)  # only while roles are made: init takes care of the orphans of other children


def _adopt_orphans(yes: bool) -> bool:
    import ctypes  # noqa: PLC0415 (not every Python is built with it)

    pr_set_child_subreaper = 36
    return bool(ctypes.CDLL(None).prctl(pr_set_child_subreaper, int(yes), 0, 0, 0) == 0)
