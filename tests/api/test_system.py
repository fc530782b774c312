"""Operators can look at the installation itself."""

from dataclasses import replace

from seckill import __version__
from seckill.bootstrap.engine import Engine
from seckill.settings import TABLE, Secret, Settings
from tests.api.conftest import ADMIN_KEY, JWT_SECRET, OPERATOR, Node, make_node


async def test_servers_version_and_settings_in_one_answer(node: Node) -> None:
    told = (await node.http.get("/v1/admin/system", headers=OPERATOR)).json()
    assert (told["version"], told["rehearsal"]) == (__version__, "off")
    assert [server["part"] for server in told["servers"]] == ["gate", "ledger"]
    assert [each["variable"] for each in told["settings"]] == [setting.variable for setting in TABLE]
    lanes = next(each for each in told["settings"] if each["variable"] == "SECKILL_LANES")
    assert lanes == {"variable": "SECKILL_LANES", "value": "4", "default": "16", "unit": ""}


async def test_no_secret_is_in_it_nor_the_path_of_an_address_that_may_be_one(
    settings: Settings, engine: Engine
) -> None:
    hook = "https://hooks.example.com/services/T0000/B0000/a-token-of-the-chat"
    told = replace(settings, alarm_url=hook, payment_secret=Secret("a-secret-of-payments-0123456789abcdef"))
    node = await make_node(told, engine)
    text = (await node.http.get("/v1/admin/system", headers=OPERATOR)).text
    for secret in (ADMIN_KEY, JWT_SECRET.reveal(), "a-token-of-the-chat", "a-secret-of-payments"):
        assert secret not in text
    assert "https://hooks.example.com/…" in text
    assert '"SECKILL_PAYMENT_SECRET","value":"***"' in text.replace(" ", "")
