"""Simulated people in the line of a sale. Each joins under a different name, and some of them pay when it is their
turn. Used only where no money moves: in a real line they would take the places of real people."""

import asyncio
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import msgspec

from seckill.client import AsyncClient, ClientError, line_requests
from seckill.errors import StartError
from seckill.http_reply import HttpReply
from seckill.lab.bench.tokens import Tokens
from seckill.lab.rehearsal.deployment import BuyersTokens, OperatorSite
from seckill.lab.rehearsal.sender import NoReply, SenderSite
from seckill.settings import Secret, Settings

Say = Callable[[str], None]

CONNECTIONS = 200
# A person without a clear answer asks again, as a page does.
ATTEMPTS = 5
LOOK_EVERY_S = 1.0
PAGE = 1_000
JOINED = "joined"
_ACCEPTED = (200, 201)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdWanted:
    url: str
    sale_id: str
    people: int
    paying: float | None = None  # the share that pays when it is their turn; None: the crowd does not wait for its turn


@dataclass(slots=True)
class CrowdSeen:
    """What became of the crowd."""

    # to requests to join: `joined`, a problem's code, or what went wrong
    answers: Counter[str] = field(default_factory=Counter)
    joined_in_s: float = 0.0
    served: int = 0
    paid: int = 0
    not_paid: int = 0  # people whose turn came and who do not pay
    unpayable: Counter[str] = field(default_factory=Counter)  # people who wanted to pay and could not
    ends: Counter[str] = field(default_factory=Counter)  # people who got nothing, by the reason that they were told

    def document(self) -> dict[str, Any]:
        return msgspec.to_builtins(self)  # type: ignore[no-any-return]


async def join_and_pay(wanted: CrowdWanted, settings: Settings, say: Say) -> CrowdSeen:
    """Raises StartError with a sentence for the user of the command."""
    if settings.admin_key is None:
        raise StartError("There is no admin key: set SECKILL_ADMIN_KEY, or run `seckill up` in this folder.")
    async with AsyncExitStack() as stack:
        site = OperatorSite(wanted.url, settings.admin_key.reveal())
        stack.push_async_callback(site.close)
        deployment = await site.look()
        if not deployment.no_money_moves:
            raise StartError(
                "Real buyers use this deployment, and simulated people would take their places: try it with "
                "`seckill up --demo`, or where SECKILL_REHEARSAL=on and the payment provider is the sandbox."
            )
        name = f"crowd-{secrets.token_hex(3)}"
        tokens = await site.buyers_tokens(settings, deployment, name, wanted.people)
        crowd = _Crowd(wanted, name, tokens, site.client, say)
        stack.callback(crowd.close)
        await crowd.join()
        if wanted.paying is not None and crowd.seen.answers[JOINED]:
            await crowd.live(wanted.paying)
        return crowd.seen


class _Crowd:
    def __init__(self, wanted: CrowdWanted, name: str, tokens: BuyersTokens, operator: AsyncClient, say: Say) -> None:
        self._wanted = wanted
        self._name = name
        self._given = tokens.given
        self._made = Tokens(Secret(tokens.secret), tokens.claims) if tokens.secret else None
        self._operator = operator
        self._site = SenderSite(wanted.url, CONNECTIONS)
        self._say = say
        self._met: set[str] = set()  # entries whose turn has come
        self.seen = CrowdSeen()

    def close(self) -> None:
        self._site.close()

    async def join(self) -> None:
        people = self._wanted.people if self._made is not None else min(self._wanted.people, len(self._given))
        self._say(f"{people:,} people join")
        numbers, began_s = iter(range(people)), time.monotonic()
        path = f"/v1/sales/{self._wanted.sale_id}/entries"
        await asyncio.gather(*(self._each(numbers, path) for _ in range(min(CONNECTIONS, people))))
        self.seen.joined_in_s = round(time.monotonic() - began_s, 2)

    async def _each(self, numbers: Iterator[int], path: str) -> None:
        for number in numbers:  # shared by all connections
            reply = await self._post(number, path, b"{}")
            self.seen.answers[JOINED if reply in _ACCEPTED else str(reply)] += 1

    async def live(self, paying: float) -> None:
        """Goes on until no one in the line waits any more and all who want to pay have paid."""
        dice = random.Random(self._name)  # noqa: S311 (chance, not a secret)
        while True:
            line = (await self._look(limit=1))["line"]
            if line["served"] > len(self._met):
                await self._pay(paying, dice)
            self._say(self._told(line))
            if not line["waiting"]:
                break
            await asyncio.sleep(LOOK_EVERY_S)
        await self._pay(paying, dice)
        async for entry in self._entries("passed_over"):
            self.seen.ends[entry["reason"] or ""] += 1

    def _told(self, line: Mapping[str, Any]) -> str:
        if not line["drawn"]:
            return f"{line['waiting']:,} wait for the draw"
        return (
            f"{line['waiting']:,} wait, {line['served']:,} served, up to place {line['served_up_to']:,}; "
            f"{self.seen.paid:,} paid, {line['unpaid']:,} of {line['units']:,} units unpaid"
        )

    async def _pay(self, paying: float, dice: random.Random) -> None:
        """Pays for those whose turn has come since the last call."""
        fresh = [entry async for entry in self._entries("served") if entry["entry_id"] not in self._met]
        self._met |= {entry["entry_id"] for entry in fresh}
        ours = [entry for entry in fresh if entry["buyer"].startswith(f"{self._name}-")]
        willing = [entry for entry in ours if dice.random() < paying]
        self.seen.served += len(ours)
        self.seen.not_paid += len(ours) - len(willing)
        orders = iter(willing)
        await asyncio.gather(*(self._pay_each(orders) for _ in range(min(CONNECTIONS, len(willing)))))

    async def _pay_each(self, entries: Iterator[Mapping[str, Any]]) -> None:
        for entry in entries:
            number = int(entry["buyer"].rpartition("-")[2])
            reply = await self._post(number, f"/v1/orders/{entry['order_id']}/pay", b"")
            if reply in _ACCEPTED:
                self.seen.paid += 1
            else:
                self.seen.unpayable[str(reply)] += 1

    async def _entries(self, state: str) -> Any:
        after = None
        while True:
            page = await self._look(state=state, limit=PAGE, after=after)
            for entry in page["entries"]:
                yield entry
            if page["next"] is None:
                return
            after = str(page["next"])

    async def _look(self, **asked: Any) -> dict[str, Any]:
        """Looks as an operator, who sees all entries with one request. Otherwise each of ten thousand people would ask
        every second."""
        try:
            found: dict[str, Any] = await self._operator.document(line_requests.line(self._wanted.sale_id, **asked))
        except ClientError as error:
            raise StartError(f"The line of this sale cannot be looked at ({error}).") from error
        return found

    async def _post(self, number: int, path: str, body: bytes) -> int | str:
        """Returns the status if the request succeeded; otherwise a problem's code, or what went wrong."""
        token = self._given[number] if self._made is None else self._made.of(f"{self._name}-{number}")
        head = (
            f"POST {self._site.prefix}{path} HTTP/1.1\r\nHost: {self._site.host_header}\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        answer: int | str = ""
        for _ in range(ATTEMPTS):
            try:
                reply = await self._site.ask(head.encode() + body)
            except NoReply as error:
                answer = str(error)
                continue
            if reply.status < 400:
                return reply.status
            answer = _code(reply)
            if reply.status < 500 and reply.status != 429:
                break
            await asyncio.sleep(float(reply.headers.get("retry-after", LOOK_EVERY_S)))
        return answer


def _code(reply: HttpReply) -> str:
    try:
        return str(msgspec.json.decode(bytes(reply.body))["code"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return f"http {reply.status}"
