"""All keys of a gate as text that can be reviewed and put back: its own DUMP would be bound to the server's version."""

from typing import Any

Copy = dict[str, dict[str, Any]]


async def copy_gate(client: Any) -> Copy:
    names = sorted(key.decode() for key in await client.keys("seckill:*"))
    return {name: await _copy(client, name) for name in names if "{nodes}" not in name}  # who runs is not kept


async def _copy(client: Any, name: str) -> dict[str, Any]:
    kind = (await client.type(name)).decode()
    if kind == "string":
        return {"string": (await client.get(name)).decode()}
    if kind == "hash":
        return {"hash": {field.decode(): value.decode() for field, value in (await client.hgetall(name)).items()}}
    assert kind == "stream", f"{name} is a {kind}, which is not kept yet"
    facts = await client.xinfo_stream(name)
    return {
        "stream": [[entry.decode(), _readable(fields)] for entry, fields in await client.xrange(name)],
        "last": facts["last-generated-id"].decode(),
        "added": facts["entries-added"],
        "deleted": facts["max-deleted-entry-id"].decode(),
        "groups": {
            group["name"].decode(): {
                "last": group["last-delivered-id"].decode(),
                "read": group["entries-read"],
                "pending": [
                    [row["message_id"].decode(), row["consumer"].decode()]
                    for row in await client.xpending_range(name, group["name"], "-", "+", 1000)
                ],
            }
            for group in await client.xinfo_groups(name)
        },
    }


def _readable(fields: dict[bytes, bytes]) -> str | dict[str, str]:
    """An entry of one order is text, one of several is not."""
    return fields[b"order"].decode() if b"order" in fields else {"orders": fields[b"orders"].hex()}


async def put_back(client: Any, copy: Copy) -> None:
    for name, kept in copy.items():
        if "string" in kept:
            await client.set(name, kept["string"])
        elif "hash" in kept:
            await client.hset(name, mapping=kept["hash"])
        else:
            await _put_back_stream(client, name, kept)


async def _put_back_stream(client: Any, name: str, kept: dict[str, Any]) -> None:
    for group in kept["groups"]:
        await client.xgroup_create(name, group, id="0", mkstream=True)
    for entry, order in kept["stream"]:
        several = isinstance(order, dict)
        await client.xadd(name, {"orders": bytes.fromhex(order["orders"])} if several else {"order": order}, id=entry)
    await client.execute_command(
        "XSETID", name, kept["last"], "ENTRIESADDED", kept["added"], "MAXDELETEDID", kept["deleted"]
    )
    for group, facts in kept["groups"].items():
        await client.execute_command("XGROUP SETID", name, group, facts["last"], "ENTRIESREAD", facts["read"] or 0)
        for entry, consumer in facts["pending"]:
            await client.xclaim(name, group, consumer, 0, [entry], force=True, justid=True)
