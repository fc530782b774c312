"""deploy/nginx.conf and deploy/Caddyfile: the real proxies, in front of a node."""

import asyncio
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from seckill.lab.servers.ports import free_port
from seckill.local.tether import tethered
from seckill.web.requests.uploads import AUDIENCE, IMAGES, VOUCHERS
from seckill.web.server import KEEP_ALIVE_S
from tests.api.conftest import Served, buyer, token
from tests.deploy.authority import Authority
from tests.fixtures import missing
from tests.live import socket, stream
from tests.patience import PATIENCE_S

DEPLOY = Path(__file__).parents[2] / "deploy"
KINDS = ["nginx", "caddy"]


def program(name: str) -> str:
    fetched = Path(sys.prefix) / "servers" / name / "bin" / name
    found = shutil.which(name) or (str(fetched) if fetched.exists() else None) or shutil.which(name, path="/usr/sbin")
    return found or missing(f"there is no {name}: `make test` gets it where there is apt-get, or install it")


@dataclass
class Proxy:
    url: str
    authority: Authority


def set_up(kind: str, folder: Path, port: int, node: int) -> list[str]:
    """The file as it is, but for the places that an operator fills in. Returns the command."""
    if kind == "caddy":
        text = (DEPLOY / "Caddyfile").read_text().replace(":8080 {", f":{port} {{")
        text = re.sub(r"dynamic a api 8000 \{.*?\}", f"to 127.0.0.1:{node}", text, flags=re.DOTALL)
        (folder / "Caddyfile").write_text(text)
        return [program("caddy"), "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    own = "".join(
        f"{part}_temp_path {folder}/{part};\n" for part in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    changes = {
        "worker_processes auto;": "worker_processes 1; user root;",
        "worker_rlimit_nofile 131072;": "",
        "worker_connections 65536;": "worker_connections 256;",
        "http {": f"http {{ access_log off; {own}",
        "127.0.0.1:8000": f"127.0.0.1:{node}",
        "127.0.0.1:8001": f"127.0.0.1:{free_port()}",  # a node that is down
        "listen 443": f"listen 127.0.0.1:{port}",
        "/etc/seckill/tls/shop.crt": str(folder / "tls" / "server.pem"),
        "/etc/seckill/tls/shop.key": str(folder / "tls" / "server.key"),
    }
    text = (DEPLOY / "nginx.conf").read_text()
    for place, filled in changes.items():
        assert place in text, place
        text = text.replace(place, filled)
    (folder / "nginx.conf").write_text(text)
    basics = f"pid {folder}/pid; error_log {folder}/log notice;"
    return [
        program("nginx"),
        "-p",
        str(folder),
        "-c",
        str(folder / "nginx.conf"),
        "-e",
        str(folder / "log"),
        "-g",
        basics,
    ]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def running(kind: str, folder: Path, node: int) -> AsyncIterator[Proxy]:
    authority, port = Authority(folder / "tls"), free_port()
    command = set_up(kind, folder, port, node)
    if kind == "nginx":
        checked = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr
        command[-1] += " daemon off;"
    environ = {
        "HOME": str(folder),
        "PATH": "/usr/bin:/bin",
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen(tethered(command), stdout=out, stderr=out, env=environ, cwd=folder)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await answers(port):
                assert process.poll() is None, (folder / "out").read_text()
                await asyncio.sleep(0.02)
        yield Proxy(f"{'https' if kind == 'nginx' else 'http'}://127.0.0.1:{port}", authority)
    finally:
        # Told to stop, Caddy waits for those who are connected; killed, nginx would leave its workers behind.
        process.send_signal(signal.SIGTERM if kind == "nginx" else signal.SIGKILL)
        process.wait()


async def answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def client(proxy: Proxy) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=proxy.url, verify=proxy.authority.trusted(), timeout=PATIENCE_S)


def port_of(served: Served) -> int:
    return int(served.url.rpartition(":")[2])


async def test_a_claim_a_stream_and_a_socket_get_through(kind: str, served: Served, tmp_path: Path) -> None:
    async with running(kind, tmp_path, port_of(served)) as proxy, client(proxy) as http:
        sale = await served.node.create(units=3)
        orders = []
        for n in range(3):  # of nginx's two nodes, one is down, which no client notices
            claimed = await http.post(f"/v1/sales/{sale['id']}/orders", json={}, headers=buyer(f"ann{n}"))
            assert claimed.status_code == 202, claimed.text
            orders.append(claimed.json()["order_id"])
        secure = {"ssl": proxy.authority.trusted()} if kind == "nginx" else {}
        address = proxy.url.replace("https://", "wss://")
        async with (
            stream(proxy.url, orders[0], token("ann0")) as events,
            socket(address, token("ann1"), origin=proxy.url, **secure) as watching,
        ):
            await watching.say({"watch": orders[1]})
            assert (await watching.hear())["state"] == "queued"
            assert (first := await events.next()) is not None
            assert first.id == "queued"
            await served.node.work()
            # While the stream goes on: nothing waits for its end.
            assert (then := await events.next()) is not None
            assert then.id == "unpaid"
            assert (await watching.hear())["state"] == "unpaid"
        waited = await http.get(f"/v1/orders/{orders[2]}?wait=1", headers=buyer("ann2"))
        assert waited.json()["state"] == "unpaid"


async def test_limits_are_those_that_seckill_has(kind: str, served: Served, tmp_path: Path) -> None:
    async with running(kind, tmp_path, port_of(served)) as proxy, client(proxy) as http:
        sale = await served.node.create(units=3)
        large = await http.post(f"/v1/sales/{sale['id']}/orders", content=b"x" * 70_000, headers=buyer("ann"))
        assert large.status_code == 413
        assert (await http.get("/metrics")).status_code == 403
        assert (await http.get("/v1/admin/orders")).status_code == 401, "the network is let in; the key is missing"


def test_the_largest_upload_gets_through_nginx() -> None:
    largest = max(upload.bytes_max for upload in (VOUCHERS, IMAGES, AUDIENCE))
    assert largest <= 300 * 1024 * 1024
    assert "client_max_body_size 300m;" in (DEPLOY / "nginx.conf").read_text()


@pytest.mark.parametrize(("file", "setting"), [("nginx.conf", "keepalive_timeout"), ("Caddyfile", "keepalive")])
def test_idle_connections_are_given_up_before_the_api_closes_them(file: str, setting: str) -> None:
    """A claim that is sent on one that is being closed is not sent again: its buyer would get a 502."""
    text = (DEPLOY / file).read_text()
    upstream = text[text.index("upstream") :] if file == "nginx.conf" else text
    found = re.search(rf"\s{setting} (\d+)s", upstream)
    assert found
    assert int(found[1]) < KEEP_ALIVE_S


Answer = Callable[[bytes, asyncio.StreamWriter], None]


@asynccontextmanager
async def upstream(answer: Answer) -> AsyncIterator[int]:
    """A node that does as it is told with each request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            answer(await reader.readuntil(b"\r\n\r\n"), writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def echo(head: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(head), head))


async def test_a_client_cannot_say_who_it_is(kind: str, tmp_path: Path) -> None:
    async with upstream(echo) as port, running(kind, tmp_path, port) as proxy, client(proxy) as http:
        seen = (await http.get("/", headers={"X-Forwarded-For": "6.6.6.6", "Host": "shop.example:81"})).text.lower()
    assert re.findall(r"^x-forwarded-for: (.*?)\r?$", seen, re.MULTILINE) == ["127.0.0.1"]
    assert re.findall(r"^host: (.*?)\r?$", seen, re.MULTILINE) == ["shop.example:81"]


async def test_a_claim_that_was_sent_is_not_sent_again(kind: str, tmp_path: Path) -> None:
    """Whether it was carried out is not for a proxy to guess."""
    sent: list[bytes] = []

    def hang_up(head: bytes, _: asyncio.StreamWriter) -> None:
        sent.append(head.partition(b" ")[0])

    async with upstream(hang_up) as port, running(kind, tmp_path, port) as proxy, client(proxy) as http:
        answer = await http.post("/v1/sales/x/orders", json={})
    assert answer.status_code in (502, 504)
    assert sent == [b"POST"]


def test_caddy_understands_the_file_as_it_is() -> None:
    command = [program("caddy"), "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
