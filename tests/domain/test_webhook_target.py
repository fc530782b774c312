"""Where webhooks may go."""

from ipaddress import ip_address

import pytest

from seckill.domain.webhook_target import BadTarget, is_public, read_target

NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.1.2.3",
    "100.64.0.1",  # carrier-grade NAT
    "127.0.0.1",
    "127.255.0.1",
    "169.254.169.254",  # the metadata of clouds
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.168.1.1",
    "198.18.0.1",
    "203.0.113.5",
    "224.0.0.1",
    "239.255.255.250",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",  # IPv4-compatible
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",  # NAT64 of 127.0.0.1
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",  # Teredo
    "2001:db8::1",
    "2002:7f00:1::1",  # 6to4 of 127.0.0.1
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]
PUBLIC = [
    "1.1.1.1",
    "93.184.215.14",
    "172.15.0.1",
    "100.128.0.1",
    "2606:4700::1111",
    "::ffff:1.1.1.1",
    "64:ff9b::101:101",
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.example/",
        "file:///etc/passwd",
        "gopher://a.example/",
        "//a.example/",
        "https://",
        "https://a.example/#top",
        "https://a.example/ x",
        "https://a.example/\r\nX: y",
        "https://user@a.example/",
        "https://user:word@a.example/",
        "https://a.example:0/",
        "https://a.example:99999/",
        "https://a.example:x/",
        "https://a..example/",
        "https://-a.example/",
        "https://[::1/",
        "https://[x]/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://127.1/",
        "https://010.0.0.1/",
        "https://bücher.example/",
        f"https://a.example/{'x' * 2048}",
    ],
)
@pytest.mark.parametrize("private", [False, True])
def test_no_address_at_all(url: str, private: bool) -> None:
    with pytest.raises(BadTarget):
        read_target(url, private=private)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST.", "x.localhost", "127.0.0.1", "[::1]", "10.0.0.1", "[fe80::1]"]
)
def test_own_network_only_where_it_is_allowed(host: str) -> None:
    with pytest.raises(BadTarget, match="public address"):
        read_target(f"https://{host}/", private=False)
    assert read_target(f"http://{host}:9000/a?b=c", private=True).path == "/a?b=c"


@pytest.mark.parametrize("port", [22, 25, 6379, 5432, 1024, 65535])
def test_ports_of_other_services_are_refused(port: int) -> None:
    with pytest.raises(BadTarget, match="port"):
        read_target(f"https://a.example:{port}/", private=False)


@pytest.mark.parametrize("port", [22, 25, 1023])
def test_ports_below_1024_are_refused_in_ones_own_network_too(port: int) -> None:
    with pytest.raises(BadTarget, match="port"):
        read_target(f"http://127.0.0.1:{port}/", private=True)


def test_what_becomes_of_it() -> None:
    target = read_target("https://Shop.example:8443/hook?key=1", private=False)
    assert (target.host, target.port, target.secure, target.path) == ("shop.example", 8443, True, "/hook?key=1")
    assert target.authority == "Shop.example:8443"
    plain = read_target("http://a.example", private=False)
    assert (plain.port, plain.secure, plain.path, plain.authority) == (80, False, "/", "a.example")
