"""All answers have the same headers, and every address has one spelling: over a real port, on each way of an answer."""

import asyncio
import re

import pytest

from seckill.web.requests.request_ids import request_id
from tests.api.conftest import ADMIN_KEY, Served, token
from tests.patience import PATIENCE_S

Answer = tuple[int, dict[str, str], bytes]
UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
ADMIN = f"Authorization: Bearer {ADMIN_KEY}\r\n"


async def exchange(served: Served, request: str) -> Answer:
    """Returns the answer to a request after which the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(served.url.rpartition(":")[2]))
    writer.write(request.encode("latin-1"))
    async with asyncio.timeout(PATIENCE_S):
        answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    assert len(headers) == len(lines) - 1, f"a header is there twice: {lines}"
    return int(lines[0].split()[1]), headers, body


async def ask(served: Served, path: str, more: str = "", method: str = "GET") -> Answer:
    return await exchange(served, f"{method} {path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n{more}\r\n")


async def claim(served: Served, sale_id: str, more: str = "", unusual: bool = False) -> Answer:
    """Claims from the bytes; or, with a header that only the parser may judge, as an ASGI request."""
    parsed = "Trailer: X-Checksum\r\n" if unusual else ""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(served.url.rpartition(":")[2]))
    writer.write(f"POST /v1/sales/{sale_id}/orders HTTP/1.1\r\nHost: here\r\n{parsed}{more}\r\n".encode())
    async with asyncio.timeout(PATIENCE_S):
        head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    lines = head.decode().rstrip().split("\r\n")
    return int(lines[0].split()[1]), dict(line.lower().split(": ", 1) for line in lines[1:]), b""


async def test_no_redirect_names_a_host(served: Served) -> None:
    """It would be the one of a header, and the token in the fragment would go there."""
    for path in ("/v1/sales/", "/console/", "/docs/", "/static", "/sales/x/", "/healthz/", "/orders/", "//"):
        status, headers, _ = await ask(served, path)
        assert (path, status) == (path, 404)
        assert "location" not in headers


SPELLINGS = [
    "/v1/admin%2flive",
    "/v1/admin%2Flive",
    "/v1/%61dmin/live",
    "/v1/admin/liv%65",
    "/v1/admin/live%0a",
    "/v1/admin/live%20",
    "/v1/admin/live%00",
    "/v1/admin/live%3f",
    "/v1/admin/live%",
    "/v1/admin/live%zz",
    "/v1//admin/live",
    "//v1/admin/live",
    "/v1/./admin/live",
    "/v1/sales/../admin/live",
    "/v1/sales/%2e%2e/admin/live",
    "/v1/admin/live/",
    "/v1/admin/live/.",
    "/v1\\admin/live",
    "/V1/admin/live",
    "/v1/admin/live;x=1",
    "/v1/admin/live#x",
    "/v1/admin/live?#x",
]


async def test_every_address_has_one_spelling(served: Served) -> None:
    assert (await ask(served, "/v1/admin/live", ADMIN))[0] == 200
    for path in SPELLINGS:
        for method in ("GET", "HEAD", "OPTIONS", "POST"):
            status, headers, _ = await ask(served, path, ADMIN, method)
            assert status in (400, 404), (method, path)
            assert headers["cache-control"] == "no-store"


async def test_files_and_sockets_have_one_address_too(served: Served) -> None:
    closed, socket = "Connection: close\r\n", UPGRADE
    for path, more, expected in (
        ("/static/docs.html", closed, 200),
        ("/static/%64ocs.html", closed, 404),
        ("/static//docs.html", closed, 404),
        ("/assets/own/app/theme.css", closed, 200),
        ("/assets/own/app/%74heme.css", closed, 404),
        ("/v1/%77s", socket, 404),
    ):
        status, headers, _ = await exchange(served, f"GET {path} HTTP/1.1\r\nHost: here\r\n{more}\r\n")
        assert (path, status) == (path, expected)
        assert headers["x-content-type-options"] == "nosniff"


async def test_a_socket_that_is_refused_is_told_why(served: Served) -> None:
    request = f"GET /v1/ws HTTP/1.1\r\nHost: here\r\nOrigin: https://evil.example\r\n{UPGRADE}\r\n"
    status, headers, body = await exchange(served, request)
    assert status == 403
    assert headers["cache-control"] == "no-store"
    assert b'"code":"forbidden"' in body


@pytest.mark.parametrize("unusual", [False, True], ids=["plain", "parsed"])
async def test_a_claim_has_one_address_too(served: Served, unusual: bool) -> None:
    sale = await served.node.create(units=50, limit_per_buyer=50)
    sale_id = sale["id"]
    signed_in = f"Authorization: Bearer {token('ann')}\r\n"
    assert (await claim(served, sale_id, signed_in, unusual))[0] == 202
    for spelling in (f"%{ord(sale_id[0]):02X}{sale_id[1:]}", f"{sale_id}%2f", f"/{sale_id}", f"./{sale_id}"):
        assert (await claim(served, spelling, signed_in, unusual))[0] == 404
    for body in ('{"quantity":1,"quantity":2}', '{"quantity":2,"quantit\\u0079":1}'):
        response = await served.node.http.post(
            f"/v1/sales/{sale_id}/orders", content=body, headers={"Authorization": f"Bearer {token('ann')}"}
        )
        assert (response.status_code, response.json()["errors"][0]["field"]) == (422, "quantity")


ANSWERS = [
    ("/v1/sales", "", 200),
    ("/v1/orders", "", 401),
    ("/v1/admin/live", "", 401),
    ("/v1/admin/live", "Authorization: Bearer wrong-key\r\n", 403),
    ("/v1/nowhere", "", 404),
    ("/nowhere", "Accept: text/html\r\n", 404),
    ("/static/nowhere.js", "", 404),
    ("/assets/x/nowhere.js", "", 404),
    ("/healthz", "", 200),
    ("/openapi.json", "", 200),
    ("/docs", "", 200),
    ("/static/docs.html", "", 200),
    ("/static/buyer.html", "", 200),
    ("/static/console.html", "", 200),
    ("/", "", 200),
    ("/console", "", 200),
]


async def test_what_every_answer_says_about_itself(served: Served) -> None:
    for path, more, status in ANSWERS:
        for method in ("GET", "HEAD"):
            got, headers, _ = await ask(served, path, more, method)
            assert (path, got) == (path, status)
            assert headers["x-content-type-options"] == "nosniff"
            assert re.fullmatch("[0-9a-f]{10}-[0-9a-f]+", headers["x-request-id"])
            if status >= 400:
                assert headers["cache-control"] == "no-store", path
            if headers.get("content-type", "").startswith("text/html"):
                assert "default-src 'none'" in headers["content-security-policy"], path


@pytest.mark.parametrize("unusual", [False, True], ids=["plain", "parsed"])
async def test_the_answer_to_a_claim_has_the_name_of_its_request(served: Served, unusual: bool) -> None:
    sale = await served.node.create(units=50, limit_per_buyer=50)
    signed_in = f"Authorization: Bearer {token('ann')}\r\n"
    names = set()
    for more, status in ((signed_in, 202), (signed_in, 202), ("", 401)):
        got, headers, _ = await claim(served, sale["id"], more, unusual)
        assert (got, headers["x-content-type-options"]) == (status, "nosniff")
        names.add(headers["x-request-id"])
    assert len(names) == 3
    named = await claim(served, sale["id"], f"{signed_in}X-Request-Id: from-the.proxy:1\r\n", unusual)
    assert named[1]["x-request-id"] == "from-the.proxy:1"
    long = await claim(served, sale["id"], f"{signed_in}X-Request-Id: {'x' * 65}\r\n", unusual)
    assert len(long[1]["x-request-id"]) < 65


async def test_also_what_is_refused_before_it_is_a_request(served: Served) -> None:
    status, headers, _ = await exchange(served, "nonsense\r\n\r\n")
    assert status == 400
    assert headers["x-request-id"]
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "given", [b"", b" x", b"a b", b"a\x1b[31m", b"-a", b"x" * 65, "é".encode(), b'a"b', b"a\tb", b"a,b"]
)
def test_a_name_that_is_not_short_and_plain_is_not_taken(given: bytes) -> None:
    assert request_id(given) != given


def test_names_are_never_given_twice() -> None:
    assert len({request_id() for _ in range(1000)} | {request_id(b"mine")}) == 1001


async def test_a_sale_is_for_caches_under_one_address(served: Served) -> None:
    """A person may type an id in small letters, with hyphens or with O for 0: it is found, and the answer is not
    cached."""
    sale_id = (await served.node.create(units=5))["id"]
    found = [await served.node.http.get(f"/v1/sales/{typed}") for typed in (sale_id, sale_id.lower(), f"{sale_id}-")]
    assert [answer.json()["id"] for answer in found] == [sale_id] * 3
    kept = [answer.headers["cache-control"] for answer in found]
    assert "max-age" in kept[0]
    assert kept[1:] == [kept[0] if sale_id.lower() == sale_id else "no-store", "no-store"]
