"""Which address a request counts for: only a proxy of ours can choose it."""

from ipaddress import ip_network

import pytest

from seckill.web.requests.client_address import ClientAddresses, prefix_of

OURS = ClientAddresses([ip_network("10.0.0.0/8"), ip_network("fd00::/8")])


@pytest.mark.parametrize(
    ("peer", "headers", "client"),
    [
        ("192.0.2.7", [], "192.0.2.7"),
        ("192.0.2.7", [("x-forwarded-for", "203.0.113.1")], "192.0.2.7"),  # any client can write that
        ("192.0.2.7", [("forwarded", "for=203.0.113.1")], "192.0.2.7"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", [("x-forwarded-for", "203.0.113.1")], "203.0.113.1"),
        ("::ffff:10.0.0.1", [("x-forwarded-for", "203.0.113.1")], "203.0.113.1"),
        ("fd00::1", [("x-forwarded-for", "2001:db8::5")], "2001:db8::5"),
        # The left part is what the client has sent itself.
        ("10.0.0.1", [("x-forwarded-for", "1.2.3.4, 203.0.113.1")], "203.0.113.1"),
        ("10.0.0.1", [("x-forwarded-for", "1.2.3.4"), ("x-forwarded-for", "203.0.113.1, 10.0.0.9")], "203.0.113.1"),
        ("10.0.0.1", [("x-forwarded-for", "10.0.0.8, 10.0.0.9")], "10.0.0.8"),
        ("10.0.0.1", [("x-forwarded-for", "203.0.113.1:4711")], "203.0.113.1"),
        ("10.0.0.1", [("x-forwarded-for", "[2001:db8::5]:4711")], "2001:db8::5"),
        ("10.0.0.1", [("x-forwarded-for", "nonsense")], "10.0.0.1"),
        ("10.0.0.1", [("x-forwarded-for", "203.0.113.1, nonsense")], "10.0.0.1"),
        ("10.0.0.1", [("x-forwarded-for", "1.2.3.4," * 5000 + "203.0.113.1")], "203.0.113.1"),
        ("10.0.0.1", [("forwarded", 'for=1.2.3.4, for="[2001:db8::5]:80";proto=https')], "2001:db8::5"),
        ("10.0.0.1", [("forwarded", "proto=https;For=203.0.113.1;by=10.0.0.1")], "203.0.113.1"),
        ("10.0.0.1", [("forwarded", "for=unknown")], "10.0.0.1"),
        # A quotation mark that a client left open swallows nothing that the proxy adds, there or in a line of its own.
        ("10.0.0.1", [("forwarded", 'for=", for="[2001:db8::5]"')], "2001:db8::5"),
        ("10.0.0.1", [("forwarded", 'for="'), ("forwarded", 'for="[2001:db8::5]";proto=https')], "2001:db8::5"),
        ("10.0.0.1", [("forwarded", 'for="1.2.3.4, for=6.6.6.6", for="203.0.113.1", for=10.0.0.9')], "203.0.113.1"),
        ("10.0.0.1", [("forwarded", "for=1.2.3.4"), ("x-forwarded-for", "203.0.113.1")], "203.0.113.1"),
        ("", [("x-forwarded-for", "203.0.113.1")], ""),
    ],
)
def test_only_proxies_of_ours_say_whose_a_request_is(peer: str, headers: list[tuple[str, str]], client: str) -> None:
    assert OURS.of(peer, [(name.encode(), value.encode()) for name, value in headers]) == client


def test_without_proxies_nobody_does() -> None:
    assert ClientAddresses([]).of("127.0.0.1", [(b"x-forwarded-for", b"203.0.113.1")]) == "127.0.0.1"


def test_what_is_remembered_of_peers_is_bounded() -> None:
    addresses = ClientAddresses([ip_network("10.0.0.0/8")])
    for number in range(20_000):
        addresses.trusts(f"192.0.{number // 256}.{number % 256}")
    assert len(addresses._known) <= 4096


def test_one_client_of_ipv6_is_a_network() -> None:
    assert prefix_of("192.0.2.1") == "192.0.2.1"
    assert prefix_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert prefix_of("2001:db8::1") == prefix_of("2001:db8::ffff:1") == "2001:db8::/64"
    assert prefix_of("2001:db8:0:1::1") == "2001:db8:0:1::/64"
    assert prefix_of("fe80::1%eth0") == "fe80::/64"
