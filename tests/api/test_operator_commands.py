"""`seckill operator`, `seckill record` and `seckill buyer`, against an API on a port."""

import asyncio
import json

import pytest

from tests.api.conftest import ADMIN_KEY, Node
from tests.cli.test_command_line import seckill
from tests.public.serving import on_a_port


async def test_commands(node: Node, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SECKILL_ADMIN_KEY", ADMIN_KEY)

    async def said(*arguments: str, code: int = 0) -> str:
        done = await asyncio.to_thread(seckill, monkeypatch, *arguments, "--url", url)
        told = capsys.readouterr()
        assert (done or 0) == code, told
        return told.out + told.err

    sale = await node.create(title="Phone")
    async with on_a_port(node.api) as url:
        assert "No keys but" in await said("operator", "list")
        assert "shown this once" in await said("operator", "create", "Li Na", "--role", "viewer", "--days", "90")
        made = json.loads(await said("operator", "create", "Li Na", "--role", "viewer", "--json"))
        assert made["expires_at"] is None
        assert (await said("operator", "list")).count("Li Na") == 2
        monkeypatch.setenv("SECKILL_ADMIN_KEY", made["key"])
        assert "needs the role operator; the key of Li Na" in await said("sale", "pause", sale["id"], code=1)
        monkeypatch.setenv("SECKILL_ADMIN_KEY", ADMIN_KEY)
        assert (await said("operator", "revoke", "Li Na")).count("is revoked") == 2
        assert "no key of Li Na" in await said("operator", "revoke", "Li Na", code=1)
        monkeypatch.setenv("SECKILL_ADMIN_KEY", made["key"])
        assert "This key was revoked" in await said("record", "list", code=1)
        monkeypatch.setenv("SECKILL_ADMIN_KEY", ADMIN_KEY)

        await said("sale", "pause", sale["id"], "--reason", "价格写错了")
        listed = await said("record", "list", "--sale", sale["id"])
        assert "status: open → paused" in listed
        assert "价格写错了" in listed
        assert "--after" in await said("record", "list", "--limit", "1")
        exported = [json.loads(line) for line in (await said("record", "export", "--what", "key.*")).splitlines()]
        assert [entry["what"] for entry in exported] == [*2 * ["key.revoked"], *2 * ["key.created"]]
        assert "must be a time" in await said("record", "list", "--since", "2026-11-20T10:00:00", code=1)

        assert await said("buyer", "list") == "Nobody is blocked.\n"
        assert await said("buyer", "block", "bot", "--reason", "resells") == "bot is blocked.\n"
        assert "resells" in await said("buyer", "list")
        assert await said("buyer", "unblock", "bot", "--reason", "a mistake") == "bot may buy.\n"
        assert "are over" in await said("buyer", "end-tokens", "bot", "--reason", "stolen")
        before = ("--before", "2026-01-01T00:00:00+00:00")
        ended = await said("buyer", "end-all-tokens", "--reason", "leaked", *before)
        assert ended == "All tokens issued before 2026-01-01 00:00:00Z are over.\n"
