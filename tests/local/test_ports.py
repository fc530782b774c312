import socket
import sys
from pathlib import Path

import pytest

from seckill.lab.servers import ports


def test_no_port_is_given_twice_or_while_it_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((ports.HOST, 0)) as taken:
        port: int = taken.getsockname()[1]
        monkeypatch.setattr(ports, "PORTS", range(port, port + 50))
        monkeypatch.setattr(ports, "_given", set())
        found = ports.free_ports(10)
    assert len(set(found)) == 10
    assert port not in found


@pytest.mark.skipif(sys.platform != "linux", reason="others say it elsewhere")
def test_no_outgoing_connection_takes_the_port_of_a_server_that_is_down() -> None:
    first, _ = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    assert max(ports.free_ports(20)) < int(first)
