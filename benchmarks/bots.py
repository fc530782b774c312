"""One address with 2,500 names against 2,000 units, and what each defence makes of it.

    .venv/bin/python benchmarks/bots.py [--only WORD] [--prepare 60] [--json FILE]

`seckill up` (Valkey, SQLite, one API process) behind a trusted proxy, which is this script: it writes the address of
each client into `X-Forwarded-For`. Three crowds want one unit each, at most:

    bot      2,500 names on one address; all press in the first instant, and again whenever they may
    people   2,500 on as many addresses; each presses once, 0.3 to 6 s after the start, as fast as a person is, and
             again only as the buyers' page does: after a 429 or 503, when the answer says so
    school   300 people on one address

In a draw all of them join before the start, and it begins when all are in.

A sale ends when all have their answer or after 20 s. Where a pass is work, the bot has `--prepare` seconds of one core
before the start (of CPU time, however busy the machine is), with the hash of the standard library, and does what it can
in that time; people have their passes, which costs each of their phones the second that docs/door.md tells. What a
bot's unit costs is what it has spent of that core, divided by the units that it got.
"""

import argparse
import asyncio
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx2
import uvloop

from seckill.domain.proof_of_work import solve
from tests.e2e.stack import Stack, running

UNITS = 2_000
BOT_NAMES = 2_500
PEOPLE = 2_500
PUPILS = 300
SALE_S = 20.0
BOT_ADDRESS, SCHOOL_ADDRESS = "203.0.113.9", "198.51.100.7"
CONNECTIONS = 400
SERVED_WITHIN_S = 120.0


@dataclass
class Defence:
    name: str
    settings: dict[str, str] = field(default_factory=dict)
    sale: dict[str, Any] = field(default_factory=dict)
    listed: bool = False

    @property
    def draws(self) -> bool:
        return self.sale.get("order") == "draw"


NO_LIMIT = {f"SECKILL_{what}_PER_ADDRESS": "0" for what in ("CLAIMS", "PASSES", "ENTRIES")}
DEFENCES = (
    Defence("none", NO_LIMIT),
    Defence("address: 100 a second (default)"),
    Defence("address: 10 a second", {"SECKILL_CLAIMS_PER_ADDRESS": "10"}),
    Defence("work", NO_LIMIT, {"pass": "work"}),
    Defence("work and address (default)", {}, {"pass": "work"}),
    Defence("draw", NO_LIMIT, {"order": "draw"}),
    Defence("draw, work and address (default)", {}, {"order": "draw", "pass": "work"}),
    Defence("list of invited buyers", NO_LIMIT, {"audience": {"list": True}}, listed=True),
)


@dataclass
class Crowd:
    """Names with tokens, the address that they come from, and what has become of them."""

    name: str
    tokens: Sequence[str]
    addresses: Sequence[str]
    passes: Sequence[str | None]
    units: int = 0
    presses: int = 0
    answers: Counter[str] = field(default_factory=Counter)  # the last one of each name
    waits_s: list[float] = field(default_factory=list)


class Connection:
    """One connection to the API: a request, its answer, and the next."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def press(self, path: str, token: str, address: str, pass_: str | None) -> tuple[int, str, float]:
        """Status, code or state, and what `Retry-After` says."""
        lines = [f"POST {path} HTTP/1.1", "Host: shop", f"Authorization: Bearer {token}", "Content-Length: 2"]
        lines += [f"X-Forwarded-For: {address}"] + ([] if pass_ is None else [f"Seckill-Pass: {pass_}"])
        self._writer.write("\r\n".join(lines).encode() + b"\r\n\r\n{}")
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
        body = json.loads(await self._reader.readexactly(int(headers["content-length"])))
        return int(head[0].split()[1]), body.get("code", body.get("state")), float(headers.get("retry-after", 0))

    def close(self) -> None:
        self._writer.close()


class Pool:
    def __init__(self, port: int) -> None:
        self._free: asyncio.Queue[Connection] = asyncio.Queue()
        self._port = port

    async def open(self, many: int) -> None:
        for _ in range(many):
            connection = Connection(self._port)
            await connection.open()
            self._free.put_nowait(connection)

    async def press(self, *claim: Any) -> tuple[int, str, float]:
        connection = await self._free.get()
        try:
            return await connection.press(*claim)
        finally:
            self._free.put_nowait(connection)

    def close(self) -> None:
        while not self._free.empty():
            self._free.get_nowait().close()


async def want(crowd: Crowd, number: int, path: str, pool: Pool, began_s: float, after_s: float) -> None:
    """One name, until there is an answer that is a decision."""
    await asyncio.sleep(max(0.0, began_s + after_s - time.monotonic()))
    pressed_s = time.monotonic()
    while time.monotonic() < began_s + SALE_S:
        crowd.presses += 1
        status, said, retry_s = await pool.press(
            path, crowd.tokens[number], crowd.addresses[number], crowd.passes[number]
        )
        crowd.answers[f"{status} {said}"] += 1
        crowd.units += status == 202
        if status not in (429, 503):
            break
        await asyncio.sleep(retry_s + random.uniform(0.1, 0.5))
    crowd.waits_s.append(time.monotonic() - pressed_s)


def _bot_solves(url: str, sale_id: str, names: Sequence[tuple[str, str]], seconds: float, results: Any) -> None:
    """As many passes as one core makes in that time."""
    passes: dict[int, str] = {}
    before_s = time.process_time()
    with httpx2.Client(base_url=url) as http:
        for number, (token, address) in enumerate(names):
            if time.process_time() > before_s + seconds:
                break
            headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": address}
            answer = http.post(f"/v1/sales/{sale_id}/pass", headers=headers)
            if answer.status_code != 200:
                time.sleep(float(answer.headers.get("Retry-After", 1)))
                continue
            posed = answer.json()
            solution = {name: posed[name] for name in ("challenge", "salt", "signature")}
            solution["number"] = solve(posed["challenge"], posed["salt"], posed["maxnumber"])
            given = http.post(f"/v1/sales/{sale_id}/pass", headers=headers, json={"solution": solution})
            if given.status_code == 201:
                passes[number] = given.json()["pass"]
    results.put((passes, time.process_time() - before_s))


async def passes_of_people(stack: Stack, sale: dict[str, Any], users: Sequence[str]) -> list[str]:
    """As if each of their phones had solved its own."""
    async with stack.engine() as engine:
        from seckill.bootstrap.use_cases import UseCases  # noqa: PLC0415 (only here)

        seal = UseCases(engine, stack.settings).passes.seal
        return [seal.seal(int(sale["round"]), user, int(time.time()) + 1800) for user in users]


async def attack(defence: Defence, prepare_s: float) -> dict[str, Any]:
    proxies = {"SECKILL_TRUSTED_PROXIES": "127.0.0.1", "SECKILL_CLAIMS_PER_SECOND": "0"}
    with tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True) as name:
        stack = Stack(Path(name), api=1, settings=proxies | defence.settings)
        async with running(stack):
            return await _attack(stack, defence, prepare_s)


async def _attack(stack: Stack, defence: Defence, prepare_s: float) -> dict[str, Any]:
    times = {"begins_at": from_now(3600), "ends_at": from_now(7200)} if defence.draws else {}
    sale = await stack.create_sale(units=UNITS, **defence.sale, **times)
    users = {"bot": BOT_NAMES, "people": PEOPLE, "school": PUPILS}
    named = {name: [f"{name}-{number}" for number in range(many)] for name, many in users.items()}
    addresses = {
        "bot": [BOT_ADDRESS] * BOT_NAMES,
        "people": [f"10.{number >> 8}.{number & 255}.1" for number in range(PEOPLE)],
        "school": [SCHOOL_ADDRESS] * PUPILS,
    }
    if defence.listed:
        await upload(stack, sale, [*named["people"], *named["school"]])
    needs_pass = defence.sale.get("pass") == "work"
    crowds, spent_s = {}, 0.0
    for name, ids in named.items():
        tokens = [stack.token(user) for user in ids]
        passes: list[str | None] = [None] * len(ids)
        if needs_pass and name != "bot":
            passes = list(await passes_of_people(stack, sale, ids))
        crowds[name] = Crowd(name, tokens, addresses[name], passes)
    if needs_pass:
        found, spent_s = await bot_passes(stack, sale, crowds["bot"], prepare_s)
        crowds["bot"].passes = [found.get(number) for number in range(BOT_NAMES)]
    pools = {name: Pool(stack.port) for name in crowds}
    for pool in pools.values():
        await pool.open(CONNECTIONS)
    path = f"/v1/sales/{sale['id']}/{'entries' if defence.draws else 'orders'}"
    began_s = time.monotonic() + 0.5
    chance = random.Random(7)
    tasks = [
        want(crowd, number, path, pools[name], began_s, 0.0 if name == "bot" else chance.triangular(0.3, 6.0, 1.0))
        for name, crowd in crowds.items()
        for number in range(len(crowd.tokens))
    ]
    await asyncio.gather(*tasks)
    for pool in pools.values():
        pool.close()
    if defence.draws:
        await draw(stack, sale, crowds)
    return report(defence, crowds, spent_s)


def from_now(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


async def draw(stack: Stack, sale: dict[str, Any], crowds: dict[str, Crowd]) -> None:
    """It begins, and whoever is served has a unit."""
    key = stack.settings.admin_key
    assert key is not None
    headers = {"Authorization": f"Bearer {key.reveal()}"}
    async with httpx2.AsyncClient(base_url=stack.url, timeout=60, headers=headers) as http:
        begun = await http.patch(f"/v1/sales/{sale['id']}", json={"begins_at": from_now(0)})
        assert begun.status_code == 200, begun.text
        line = f"/v1/admin/sales/{sale['id']}/line"
        async with asyncio.timeout(SERVED_WITHIN_S):
            while (await http.get(line)).json()["line"]["served"] < UNITS:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        after: int | None = 0
        while after is not None:
            page = (await http.get(line, params={"state": "served", "limit": "1000", "after": str(after)})).json()
            after = page["next"]
            for entry in page["entries"]:
                crowds[entry["buyer"].partition("-")[0]].units += 1


async def upload(stack: Stack, sale: dict[str, Any], users: Sequence[str]) -> None:
    key = stack.settings.admin_key
    assert key is not None
    headers = {"Authorization": f"Bearer {key.reveal()}", "Content-Type": "text/csv"}
    async with httpx2.AsyncClient(timeout=60) as http:
        answer = await http.put(
            f"{stack.url}/v1/admin/sales/{sale['id']}/audience", content="\n".join(users), headers=headers
        )
    assert answer.status_code == 200, answer.text


async def bot_passes(stack: Stack, sale: dict[str, Any], bot: Crowd, prepare_s: float) -> tuple[dict[int, str], float]:
    results: Any = multiprocessing.get_context("spawn").Queue()
    names = list(zip(bot.tokens, bot.addresses, strict=True))
    solver = multiprocessing.get_context("spawn").Process(
        target=_bot_solves, args=(stack.url, sale["id"], names, prepare_s, results)
    )
    solver.start()
    found: tuple[dict[int, str], float] = await asyncio.to_thread(results.get)
    solver.join()
    return found


def report(defence: Defence, crowds: dict[str, Crowd], spent_s: float) -> dict[str, Any]:
    bot = crowds["bot"]
    row: dict[str, Any] = {"defence": defence.name, "sold": sum(crowd.units for crowd in crowds.values())}
    for name, crowd in crowds.items():
        waits = sorted(crowd.waits_s)
        row[name] = {
            "units": crowd.units,
            "presses": crowd.presses,
            "answers": dict(crowd.answers.most_common()),
            "wait_p95_s": round(waits[int(0.95 * len(waits))], 2),
        }
    row["bot"]["passes"] = sum(each is not None for each in bot.passes)
    row["bot"]["core_s"] = round(spent_s, 1)
    row["bot"]["core_s_per_unit"] = round(spent_s / bot.units, 2) if bot.units and spent_s else None
    return row


async def main(only: str, prepare_s: float, out: str) -> None:
    rows = []
    for defence in DEFENCES:
        if only in defence.name:
            rows.append(await attack(defence, prepare_s))
            print(json.dumps(rows[-1]), flush=True)
    if out:
        Path(out).write_text(json.dumps(rows, indent=2) + "\n")  # noqa: ASYNC240 (nothing else runs any more)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--prepare", type=float, default=60.0)
    parser.add_argument("--json", default="")
    given = parser.parse_args()
    uvloop.run(main(given.only, given.prepare, given.json))
