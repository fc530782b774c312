"""Whoever changes something by a command can say why, and that goes on the record."""

import shlex
from typing import Any

import pytest

from seckill.cli import app
from seckill.cli.command_list import COMMANDS, GROUPS
from seckill.client import Client
from seckill.client.requests import Request
from seckill.errors import SeckillError
from tests.api.conftest import ADMIN_KEY
from tests.cli.test_command_line import seckill

WHY = "the shop has called"
# Nothing goes on the record of these.
WITHOUT = {
    *("sale list", "sale show", "sale history", "sale timeline", "orders list", "orders export", "refunds list"),
    *("line show", "line crowd", "voucher count", "voucher show", "webhook list", "webhook show", "webhook deliveries"),
    *("operator list", "record list", "record export", "buyer list", "dead list", "dead show", "alarm list"),
    *("alarm test", "token admin", "token buyer"),
}
CHANGING = [
    "sale create Phone --units 1",
    "sale duplicate S",
    "sale pause S",
    "sale resume S",
    "sale close S",
    "sale change S --limit 2",
    "sale publish S",
    "sale hide S",
    "sale add-stock S 5",
    "orders cancel O",
    "orders refund O --return-unit",
    "refunds done R",
    "line pause S",
    "line resume S",
    "line pace S 5",
    "line beacon S 7",
    "voucher upload S /dev/null",
    "voucher redeem C",
    "webhook create https://shop.example/hook",
    "webhook change W --no-enabled",
    "webhook delete W",
    "webhook rotate W",
    "webhook test W",
    "webhook redeliver W D",
    "operator create Li",
    "operator revoke Li",
    "buyer block ann",
    "buyer unblock ann",
    "buyer end-tokens ann",
    "buyer end-all-tokens",
    "dead replay L",
    "dead discard L",
    "erase ann",
]


def names() -> set[str]:
    """All commands, without options such as --help."""
    of_groups = {f"{group} {name}" for group in GROUPS for name in app[group] if not name.startswith("-")}
    return of_groups | (set(COMMANDS) - set(GROUPS))


def test_every_command_of_a_group_is_one_or_the_other() -> None:
    changing = {" ".join(line.split()[:2]) for line in CHANGING if line.split()[0] in GROUPS}
    assert changing | WITHOUT == {name for name in names() if " " in name}
    assert not changing & WITHOUT


@pytest.mark.parametrize("line", CHANGING)
def test_its_reason_is_sent(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str | None] = []

    def document(_: Client, request: Request[Any]) -> Any:
        if request.method == "GET":
            return {"operators": [{"id": "1", "name": "Li", "revoked_at": None}]}
        sent.append(request.reason or (request.body or {}).get("reason"))
        raise SeckillError("That is enough.")

    monkeypatch.setenv("SECKILL_ADMIN_KEY", ADMIN_KEY)
    monkeypatch.setattr(Client, "document", document)
    assert seckill(monkeypatch, *shlex.split(line), "--reason", WHY) == 1
    assert sent == [WHY]
