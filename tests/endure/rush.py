"""A leg at full speed: `python -m tests.endure.rush`. A crowd that only claims, with faults beside it, as those of
`seckill chaos`; then every 202 is looked up in the ledger. Prints a document of the same shape as that command."""

import argparse
import asyncio
import itertools
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
import uvloop
from sqlalchemy import select

from seckill.audit import Auditor, open_auditor
from seckill.audit.database import ReadOnlyDatabase
from seckill.audit.ledger import LedgerReader
from seckill.backends.sql.tables import orders
from seckill.domain.public_id import PublicIds
from seckill.lab.chaos import place as places
from seckill.lab.chaos.buyer_calls import Caller, Unanswered
from seckill.lab.chaos.evidence import Evidence
from seckill.lab.chaos.faults import Injector
from seckill.lab.chaos.final_books import Closing
from seckill.lab.chaos.place import ChaosPlace, Wanted, place
from seckill.lab.chaos.recovery_times import Recoveries
from seckill.lab.chaos.schedule import DRILLS, FORGETTING, plan

BUYERS_AT_ONCE = 64
UNITS = 100_000_000
PAGE = 50_000
# Not what makes the gate forget, or takes the disk that a million orders need; and recoveries are not measured here.
LEFT_OUT = {*DRILLS, *FORGETTING, "full-disk", "starve", "clock"}
ASK_AGAIN_S = 0.05


@dataclass
class Crowd:
    """`accepted`: order id → buyer, of every 202."""

    accepted: dict[str, str] = field(default_factory=dict)
    codes: Counter[str] = field(default_factory=Counter)

    async def press(self, here: ChaosPlace, sale: str, until: asyncio.Event) -> None:
        numbers = itertools.count()

        async def one_after_the_other(first: int) -> None:
            caller = Caller(here.ports, first)
            while not until.is_set():
                await self._buy(caller, here, sale, f"b{next(numbers)}")
            await caller.close()

        await asyncio.gather(*map(one_after_the_other, range(BUYERS_AT_ONCE)))

    async def _buy(self, caller: Caller, here: ChaosPlace, sale: str, user: str) -> None:
        """Presses with one key until there is a clear answer, even when all others have left."""
        token = here.token(user)
        while True:
            try:
                status, content = await caller.call("POST", f"/v1/sales/{sale}/orders", token, {}, key="1")
            except Unanswered:
                self.codes["no answer"] += 1
                await asyncio.sleep(ASK_AGAIN_S)
                continue
            self.codes["accepted" if status == 202 else str(content.get("code"))] += 1
            if status == 202:
                self.accepted[content["order_id"]] = user
                return
            await asyncio.sleep(ASK_AGAIN_S)


def judge(
    accepted: Mapping[str, str], rows: Mapping[str, str], audit: Mapping[str, tuple[str, list[str]]]
) -> list[dict[str, Any]]:
    """`rows`: order id → buyer, as the ledger has them. `audit`: invariant → verdict and what was found."""
    lost = [order_id for order_id, user in accepted.items() if rows.get(order_id) != user]
    buyers = Counter(rows.values())
    twice = [user for user, count in buyers.items() if count > 1]
    broken = [f"{name}: {' '.join(found[:1])}" for name, (verdict, found) in audit.items() if verdict != "holds"]
    return [
        _check("lost", lost, "every order that was answered with 202 is in the ledger, with its buyer"),
        _check("duplicates", twice, "one key, one order"),
        _check("untold", sorted(rows.keys() - accepted.keys()), "of every order in the ledger its buyer was told"),
        _check("audit", broken or ([] if audit else ["nothing came to rest"]), "every invariant of the auditor"),
    ]


def _check(name: str, wrong: list[str], says: str) -> dict[str, Any]:
    verdict = "broken" if wrong else "holds"
    return {"name": name, "verdict": verdict, "count": len(wrong), "says": says, "named": wrong[:5]}


async def rush(wanted: Wanted, seconds: float) -> dict[str, Any]:
    began_s = time.monotonic()

    def clock() -> float:
        return time.monotonic() - began_s

    evidence, crowd = Evidence(), Crowd()
    places.DISK_MIB = {}  # the orders of a leg need more than a small disk
    async with place(wanted, clock) as here, open_auditor(here.settings, every_round=True) as auditor:
        recoveries = Recoveries(evidence, here.crew, here.settings.redis_url, here.settings.lanes, 1.0, clock)
        injector = Injector(here, evidence, recoveries, clock, _say)
        sale = await _announce(here)
        schedule = plan(wanted.seed, seconds, [option for option in here.options() if option[0] not in LEFT_OUT])
        began_s = time.monotonic()
        enough = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            pressing = tasks.create_task(crowd.press(here, sale, enough))
            async with asyncio.TaskGroup() as faults:
                for fault in schedule:
                    await asyncio.sleep(max(0.0, fault.at_s - clock()))
                    faults.create_task(injector.inject(fault))
            await asyncio.sleep(max(0.0, seconds - clock()))
            await injector.heal()
            enough.set()
            await pressing
        pressed_s = clock()
        _say(f"{len(crowd.accepted):,} accepted in {pressed_s:.0f} s, waiting until all is at rest")
        rows = await _at_rest(here, auditor, evidence, clock)
        checks = judge(crowd.accepted, rows, evidence.final)
    return {
        "verdict": "broken" if any(check["verdict"] == "broken" for check in checks) else "holds",
        "accepted": len(crowd.accepted),
        "orders": len(rows),
        "answers": dict(crowd.codes.most_common()),
        "seconds": round(pressed_s, 1),
        "checks": checks,
        "faults": [asdict(done) for done in evidence.done],
        "notes": evidence.notes,
    }


async def _announce(here: ChaosPlace) -> str:
    now = datetime.now(UTC)
    body = {
        "title": "Rush",
        "units": UNITS,
        "price_cents": 100,
        "pay_within_s": 24 * 3600,
        "begins_at": (now - timedelta(hours=1)).isoformat(),
        "ends_at": (now + timedelta(days=1)).isoformat(),
    }
    key = here.settings.admin_key
    assert key is not None
    caller = Caller(here.ports, 0)
    while True:
        try:
            status, content = await caller.call("POST", "/v1/sales", key.reveal(), body)
            if status == 201:
                await caller.close()
                return str(content["id"])
        except Unanswered:
            pass
        await asyncio.sleep(ASK_AGAIN_S)


async def _at_rest(here: ChaosPlace, auditor: Auditor, evidence: Evidence, clock: Any) -> dict[str, str]:
    """Order id → buyer, when nothing is on its way any more."""
    closing = Closing(here.settings, auditor, evidence, clock)
    try:
        await closing.rest()
    finally:
        await closing.close()
    reader = LedgerReader(here.settings.database_url)
    try:
        key = await reader.id_key()
    finally:
        await reader.close()
    assert key is not None
    ids = PublicIds(key, "order")
    database = ReadOnlyDatabase(here.settings.database_url)
    rows: dict[str, str] = {}
    try:
        last = 0
        while True:
            page = await database.rows(
                select(orders.c.id, orders.c.user_id).where(orders.c.id > last).order_by(orders.c.id).limit(PAGE)
            )
            if not page:
                return rows
            rows |= {ids.encode(row.id): row.user_id for row in page}
            last = page[-1].id
    finally:
        await database.close()


def _say(what: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {what}\n")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", default="sqlite")
    parser.add_argument("--redis", default="valkey")
    parser.add_argument("--out", type=Path)
    wanted = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    logs = None
    if wanted.out is not None:
        (logs := wanted.out / "logs").mkdir(parents=True, exist_ok=True)
    place_ = Wanted(gate=wanted.redis, ledger=wanted.database, broker="", logs=logs, seed=wanted.seed)
    found = uvloop.run(rush(place_, wanted.minutes * 60))
    sys.stdout.write(json.dumps(found) + "\n")
    return 0 if found["verdict"] == "holds" else 1


if __name__ == "__main__":
    sys.exit(main())
