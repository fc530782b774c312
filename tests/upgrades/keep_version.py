"""Keeps what this version writes, for every later one to read: `make keep-version VERSION=0.3.0`, once for a release.

A ledger as SQL, the gate's keys, the messages in RabbitMQ, what buyers and shop were told, and every name that they
use, and the code of its roles, in tests/fixtures/versions. What is kept there is never made again: a version that can
no longer read it, or work beside it, breaks a promise.
"""

import asyncio
import json
import sqlite3
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiormq

from seckill.backends.redis.gate import connect
from seckill.backends.sql.migration import migrate
from seckill.bootstrap.engine import fingerprint, open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.settings import Settings
from tests.api.conftest import make_node, settings_of_a_node
from tests.fixtures.rabbitmq import running_rabbitmq
from tests.fixtures.valkey import running, valkey_program
from tests.upgrades.gate_copy import copy_gate
from tests.upgrades.kept_code import VERSIONS, keep_code
from tests.upgrades.names import names
from tests.upgrades.world import World

ROOT = Path(__file__).parents[2]
STREAMS, BROKER = "streams", "broker"


async def keep(folder: Path, settings: Settings) -> None:
    """`settings` with a broker: what is queued is there, and the same entries wait in the stream for its confirm."""
    await migrate(settings.database_url)
    redis = connect(settings.redis_url)
    async with open_engine(settings) as engine:
        node = await make_node(settings, engine)
        world = World(node, settings, redis)
        if engine.broker is None:
            told = await world.make()
            await world.leave_one_with_a_killed_worker()
        else:
            sale = await world.sale("phone", units=5)
            for user in ("ann", "bob"):
                await world.order(sale, user, "queued")
            told = world.told
            relay = UseCases(engine, settings).relay(engine.broker)
            await relay.prepare()
            while await relay.relay(wait_s=0):
                pass
        await node.http.aclose()
        ledger = fingerprint(await engine.ledger.id_key())
    write(folder / "gate.json", await copy_gate(redis))
    write(folder / "told.json", told)
    await redis.aclose()
    if settings.broker_url:
        write(folder / "messages.json", await take_messages(settings.broker_url, f"seckill.{ledger[:8]}.orders"))
    with sqlite3.connect(settings.database_url.removeprefix("sqlite:///")) as connection:
        (folder / "ledger.sql").write_text("\n".join(connection.iterdump()) + "\n")
    connection.close()


async def take_messages(url: str, queue: str) -> list[dict[str, Any]]:
    connection = await aiormq.connect(url)
    channel = await connection.channel()
    found = []
    while (message := await channel.basic_get(queue, no_ack=True)).delivery.name == "Basic.GetOk":
        properties = message.header.properties
        found.append(
            {
                "queue": queue,
                "body": message.body.decode(),
                "delivery_mode": properties.delivery_mode,
                "content_type": properties.content_type,
                "message_id": properties.message_id,
                "headers": dict(properties.headers or {}),
            }
        )
    await connection.close()
    return found


def write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def main(version: str) -> None:
    for kind in (STREAMS, BROKER):
        folder = VERSIONS / version / kind
        folder.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as place, running(valkey_program()) as redis_url:
            settings = settings_of_a_node(redis_url, f"sqlite:///{place}/ledger.db")
            if kind == STREAMS:
                asyncio.run(keep(folder, settings))
            else:
                with running_rabbitmq() as rabbit:
                    asyncio.run(keep(folder, replace(settings, broker_url=rabbit.url())))
    write(VERSIONS / version / "names.json", names())
    keep_code(version, ROOT)
    sys.stdout.write(f"{VERSIONS / version}\n")


if __name__ == "__main__":
    main(sys.argv[1])
