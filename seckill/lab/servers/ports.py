"""Ports for our own servers, which are started, killed and started again on the same port."""

import socket
from random import SystemRandom

HOST = "127.0.0.1"
# Below the ports that kernels give to outgoing connections: such a connection could take a server's port while it is
# down.
PORTS = range(20_000, 32_000)

_chance = SystemRandom()  # other processes choose at the same time
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Returns ports on which nothing listens. This process gives out none of them again."""
    found: list[int] = []
    while len(found) < count:
        port = _chance.choice(PORTS)
        if port not in _given and _is_free(port):
            _given.add(port)
            found.append(port)
    return found


def free_port() -> int:
    return free_ports(1)[0]


def _is_free(port: int) -> bool:
    try:
        socket.create_server((HOST, port)).close()
    except OSError:
        return False
    return True
