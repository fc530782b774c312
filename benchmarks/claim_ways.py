"""What one claim costs an API process in CPU time, by the way that it takes, without sockets, gate and ledger.

    make check && .venv/bin/python benchmarks/claim_ways.py [--claims 5000] [--repeats 9] [--doors]

The protocol is fed with the bytes of a browser's request of twelve headers, on 500 connections; a made-up gate admits
everybody, or has nothing left. A request that arrives whole is answered from its bytes; one whose body comes by itself
is parsed by the parser and goes through ASGI. Best and median of the repeats, in microseconds. To compare two versions,
run them in turns: what a machine that is not ours alone does meanwhile is in all figures.
"""

import argparse
import asyncio
import dataclasses
import itertools
import os
import statistics
import sys
import tempfile
import time
from array import array
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import jwt
import uvloop

from seckill.backends.sql.migration import migrate
from seckill.bootstrap.engine import Engine, new_memory, open_engine
from seckill.domain.admission import Answer, Claim, Holding
from seckill.domain.audience import Audience
from seckill.domain.audience_list import DIGEST_TYPE, digest_of
from seckill.domain.door import OPEN_DOOR, Door, PassKind
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.domain.public_id import PublicIds
from seckill.domain.sale import RoundRef, Sale
from seckill.ports.gate import GateReply
from seckill.ports.tracer import Tracer, TraceSpan
from seckill.settings import Secret, Settings
from seckill.web.app import Api
from seckill.web.claims.claim_protocol import ClaimingProtocol
from seckill.web.server import ApiServer
from tests.making import make_round

CONNECTIONS = 500
SECRET = Secret("0123456789abcdef0123456789abcdef-of-a-benchmark")
BODY = b'{"quantity":1}'
HEADERS = (
    "Host: shop.example",
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36",
    "Accept: application/json",
    "Accept-Encoding: gzip, deflate, br, zstd",
    "Accept-Language: en-GB,en;q=0.9,de;q=0.8",
    "Content-Type: application/json",
    f"Content-Length: {len(BODY)}",
    "Origin: https://shop.example",
    "Referer: https://shop.example/sales/1",
    "Sec-Fetch-Mode: cors",
    "Connection: keep-alive",
)


class NoTracer:
    def begin(self, *_: object, **__: object) -> TraceSpan:
        raise AssertionError("nothing is to be traced")


class MadeUpGate:
    def __init__(self) -> None:
        self.sold_out = False
        self._counter = itertools.count(1)

    async def admit(self, ref: RoundRef, claims: Sequence[Claim]) -> GateReply:
        await asyncio.sleep(0)
        if self.sold_out:
            return GateReply(now_ms=0, version=1, available=1, answers=[Answer(Outcome.SOLD_OUT)] * len(claims))
        answers = [Answer(Outcome.ADMITTED, (self._holding(claim),)) for claim in claims]
        return GateReply(now_ms=0, version=1, available=1_000_000, answers=answers)

    def _holding(self, claim: Claim) -> Holding:
        number = OrderNumber(200_000_000, 3, next(self._counter) & 0xFFFFFF)
        return Holding(number, claim.quantity, 1, claim.request_id, True)


class Wire(asyncio.Transport):
    """Where answers go, and where they are counted."""

    answered = 0

    def write(self, data: Any) -> None:
        if data.startswith(b"HTTP/1.1 "):
            Wire.answered += 1

    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("192.0.2.1", 5000) if name in ("peername", "sockname") else default

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None: ...


def request(sale_id: str, buyer: int, headers: Sequence[str]) -> tuple[bytes, bytes]:
    now = int(time.time())
    claims = {"sub": f"buyer-{buyer}", "iat": now, "exp": now + 3600, "groups": ["gold"]}
    token = jwt.encode(claims, SECRET.reveal(), "HS256")
    lines = [f"POST /v1/sales/{sale_id}/orders HTTP/1.1", *HEADERS, *headers, f"Authorization: Bearer {token}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n", BODY


async def measure(
    protocols: list[ClaimingProtocol], requests: list[tuple[bytes, bytes]], claims: int, *, whole: bool
) -> float:
    """Microseconds of CPU for each claim."""
    joined = [head + body for head, body in requests]
    Wire.answered = 0
    began_s = time.process_time()
    for turn in range(claims // len(protocols)):
        if whole:
            for protocol, data in zip(protocols, joined, strict=True):
                protocol.data_received(data)
        else:
            for protocol, (head, body) in zip(protocols, requests, strict=True):
                protocol.data_received(head)
                protocol.data_received(body)
        while Wire.answered < (turn + 1) * len(protocols):  # noqa: ASYNC110 (turns of the loop are what is measured)
            await asyncio.sleep(0)
    return (time.process_time() - began_s) / Wire.answered * 1e6


@dataclasses.dataclass(frozen=True)
class Stand:
    """What stands before the gate, and what a claim brings because of it."""

    name: str
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    door: Door = OPEN_DOOR
    address: bool = False  # whole claims come through a proxy of ours, each with a client's address
    listed: int = 0  # buyers on the sale's list
    tracer: Tracer | None = None


NOTHING = Stand("nothing")
STANDS = (
    NOTHING,
    Stand("limit of an address", {"claims_per_address": 1_000_000}),
    Stand(
        "limit of an address, behind a proxy",
        {"claims_per_address": 1_000_000, "trusted_proxies": (ip_network("192.0.2.1"),)},
        address=True,
    ),
    Stand("traces on, none of these traced", tracer=NoTracer()),
    Stand("pass", door=Door(pass_kind=PassKind.WORK)),
    Stand("groups", door=Door(audience=Audience(groups=("gold",)))),
    Stand("list of 1,000,000", door=Door(audience=Audience(listed=True)), listed=1_000_000),
)


class Place:
    """An API with one sale, 500 connections, and a request for each."""

    def __init__(self, stand: Stand, settings: Settings, engine: Engine) -> None:
        self.gate: Any = MadeUpGate()
        parts = {"gate": self.gate, "tracer": stand.tracer}
        self.api = Api(dataclasses.replace(settings, **stand.settings), dataclasses.replace(engine, **parts))
        self.server = ApiServer(self.api)
        self.stand = stand
        public_id = put_sale(self.api, engine.sale_ids, stand)
        self.requests = [request(public_id, buyer, self._headers(buyer)) for buyer in range(CONNECTIONS)]

    def _headers(self, buyer: int) -> list[str]:
        headers = [f"X-Forwarded-For: 198.51.{buyer // 250}.{buyer % 250}"] if self.stand.address else []
        if self.stand.door.pass_kind is not PassKind.NONE:
            ends_s = int(time.time()) + 3600
            headers.append(f"Seckill-Pass: {self.api.context.passes.seal.seal(1, f'buyer-{buyer}', ends_s)}")
        return headers

    async def open(self) -> None:
        self.server.config.load()
        await self.server.on_tick(0)
        await self.api.context.access_book.refresh()  # until it has looked once, a node believes no token
        protocol_class: Any = self.server.config.http_protocol_class
        self.protocols: list[ClaimingProtocol] = [
            protocol_class(self.server.config, self.server.server_state, {}) for _ in range(CONNECTIONS)
        ]
        for protocol in self.protocols:
            protocol.connection_made(Wire())


async def main(claims: int, repeats: int, *, doors: bool) -> None:
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            redis_url="memory://",
            database_url=f"sqlite:///{folder}/db",
            jwt_secret=SECRET,
            admin_key=Secret("k" * 40),
            claims_per_address=0,
            claims_per_second=1_000_000,  # counted, and never too many
        )
        await migrate(settings.database_url)
        async with open_engine(settings, new_memory()) as engine:
            places = [Place(stand, settings, engine) for stand in (STANDS if doors else (NOTHING,))]
            for place in places:
                await place.open()
            for _ in range(repeats + 1):  # the first warms up
                for place, whole, sold_out in itertools.product(places, (True, False), (False, True)):
                    if doors and (sold_out or not whole):
                        continue
                    place.gate.sold_out = sold_out
                    name = f"{'whole' if whole else 'in two pieces'}, {'refused' if sold_out else 'accepted'}"
                    took_us = await measure(place.protocols, place.requests, claims, whole=whole)
                    found.setdefault(place.stand.name if doors else name, []).append(took_us)
    for name, took in found.items():
        print(f"{name:36} best {min(took[1:]):6.1f}  median {statistics.median(took[1:]):6.1f} µs")


def put_sale(api: Api, sale_ids: PublicIds, stand: Stand) -> str:
    sale = Sale(
        id=1,
        title="Phone",
        price_cents=9900,
        currency="CNY",
        pay_within_s=900,
        created_ms=0,
        changed=1,
        round=make_round(total=10**6),
        door=stand.door,
        list_version=1 if stand.listed else 0,
    )
    if stand.listed:
        digests = array(DIGEST_TYPE, sorted(digest_of(f"buyer-{number}") for number in range(stand.listed)))
        api.context.lists._lists[sale.id] = 1, digests
    api.context.sale_cache.put(sale)
    return sale_ids.encode(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claims", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--doors", action="store_true", help="what stands before the gate, in turns; whole, accepted")
    given = parser.parse_args()
    os.environ |= {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_SAMPLER": "always_off"}
    uvloop.run(main(given.claims, given.repeats, doors=given.doors))
