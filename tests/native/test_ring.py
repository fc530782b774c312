"""A ring sends what one call for each answer would send, and says the same about what could not be sent."""

import errno
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from types import ModuleType

import pytest

from seckill.native import ring_choice
from seckill.native.ring_choice import ENTRIES, Ring, open_ring
from tests.native.rings import OneByOne
from tests.patience import PATIENCE_S


@pytest.fixture(params=["compiled", "one by one"])
def ring(request: pytest.FixtureRequest) -> Ring:
    if request.param == "one by one":
        return OneByOne()
    return ring_of(request.getfixturevalue("kernel"), ENTRIES)


def ring_of(kernel: ModuleType, entries: int) -> Ring:
    try:
        made: Ring = kernel.Ring(entries)
    except (AttributeError, OSError) as error:
        pytest.skip(f"This system has no ring, or does not let us have one, and nothing installs it: {error}")
    return made


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    with ExitStack() as stack:
        found = [socket.socketpair() for _ in range(ENTRIES + 100)]
        for pair in found:
            for end in pair:
                stack.enter_context(end).setblocking(False)
        yield found


def test_everybody_gets_their_own_answer_also_if_they_are_more_than_fit(
    ring: Ring, pairs: list[tuple[socket.socket, socket.socket]]
) -> None:
    for turn in range(3):
        answers = [b"answer %d of turn %d" % (place, turn) for place in range(len(pairs))]
        assert ring.send([ours.fileno() for ours, _ in pairs], answers) is None
        assert [theirs.recv(100) for _, theirs in pairs] == answers
    assert ring.send([], []) is None


def test_who_does_not_read_gets_a_part_and_holds_up_nobody(
    ring: Ring, pairs: list[tuple[socket.socket, socket.socket]]
) -> None:
    (slow, _), (quick, reader), *_ = pairs
    found = ring.send([slow.fileno(), quick.fileno()], [bytes(50_000_000), b"yes"])
    assert found is not None
    ((place, sent),) = found
    assert place == 0
    assert 0 < sent < 50_000_000
    assert reader.recv(100) == b"yes"
    assert ring.send([quick.fileno(), slow.fileno()], [b"yes", b"more"]) == [(1, -errno.EAGAIN)]


def test_a_broken_connection_is_told_and_harms_no_other(
    ring: Ring, pairs: list[tuple[socket.socket, socket.socket]]
) -> None:
    (broken, gone), (whole, reader), *_ = pairs
    gone.close()
    never = 1_000_000  # no process has as many descriptors
    found = ring.send([broken.fileno(), never, whole.fileno()], [b"a", b"b", b"c"])
    # A kernel of before 5.19 stops at what is no descriptor at all, and the rest was not sent.
    if found == [(0, -errno.EPIPE), (1, -errno.EBADF), (2, -errno.EAGAIN)]:
        assert ring.send([whole.fileno()], [b"c"]) is None
    else:
        assert found == [(0, -errno.EPIPE), (1, -errno.EBADF)]
    assert reader.recv(100) == b"c"


@pytest.mark.parametrize(
    "given",
    [
        ([1], []),
        (["1"], [b""]),
        ([1], ["a"]),
        ([1], [bytearray(1)]),
        ([2**70], [b"a"]),
        ([2**32], [b"a"]),
        ([-1], [b"a"]),
        ((), ()),
    ],
)
def test_what_is_no_list_of_answers_is_not_sent(kernel: ModuleType, given: tuple[object, object]) -> None:
    ring = ring_of(kernel, 4)
    with pytest.raises((TypeError, ValueError, OverflowError)):
        ring.send(*given)  # type: ignore[arg-type]
    for entries in (0, 1_000_000):
        with pytest.raises(ValueError, match="entries"):
            kernel.Ring(entries)


def test_where_there_is_none_answers_go_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """No compiled kernel, another system, a container that forbids it, and something that only pretends."""

    class Kernel:
        class Ring(OneByOne):
            def __init__(self, entries: int) -> None:
                pass

    class Forbidden(Kernel):
        class Ring(OneByOne):
            def __init__(self, entries: int) -> None:
                raise PermissionError(errno.EPERM, "not here")

    class Pretends(Kernel):
        class Ring(Kernel.Ring):
            def send(self, descriptors: list[int], answers: list[bytes], /) -> None:
                return None

    monkeypatch.setattr(ring_choice, "KERNEL", Kernel)
    assert open_ring() is not None
    for other in (None, object(), Forbidden, Pretends):
        monkeypatch.setattr(ring_choice, "KERNEL", other)
        assert open_ring() is None


FORBIDDING = """
import ctypes, struct
from seckill.native.ring_choice import open_ring

NR_IO_URING_SETUP, EPERM = 425, 1  # the number is the same on every kind of machine
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
program = b"".join(
    struct.pack("HBBI", *line)
    for line in ((0x20, 0, 0, 0), (0x15, 0, 1, NR_IO_URING_SETUP), (6, 0, 0, ERRNO | EPERM), (6, 0, 0, ALLOW))
)
kept = ctypes.create_string_buffer(program)
prog = struct.pack("HxxxxxxQ", 4, ctypes.addressof(kept))
prctl = ctypes.CDLL(None, use_errno=True).prctl
had = open_ring() is not None
assert prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert prctl(22, 2, ctypes.c_char_p(prog), 0, 0) == 0, ctypes.get_errno()  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
print(had, open_ring() is not None)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
def test_a_container_that_forbids_it_gets_answers_one_by_one() -> None:
    """As Docker's default profile does it: the system says that it is not permitted."""
    done = subprocess.run([sys.executable, "-c", FORBIDDING], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    had, has = done.stdout.split()
    assert has == "False"
    if had == "False":
        pytest.skip("This system gives no ring anyway, or no kernel is compiled.")
