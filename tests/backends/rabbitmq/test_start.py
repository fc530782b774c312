"""A broker that cannot be used is one sentence; one that is away is waited for."""

from types import SimpleNamespace
from typing import Any

import pytest

from seckill.backends.rabbitmq.connections import Link, _suitable, check_broker, with_heartbeat
from seckill.backends.rabbitmq.topology import QUORUM, Topology
from seckill.backends.sql import open_ledger
from seckill.bootstrap.engine import fingerprint
from seckill.bootstrap.rabbitmq import open_broker
from seckill.cli.commands.doctor import _broker
from seckill.errors import SeckillError, StartError
from seckill.settings import Settings
from tests.fixtures.rabbitmq import RabbitServer

# In one call of the broker's own tool, which takes a second. `ours` has the rights that the documentation names.
USERS = r"""
catch rabbit_auth_backend_internal:add_user(<<"weak">>, <<"weak">>, <<>>),
catch rabbit_auth_backend_internal:add_user(<<"ours">>, <<"ours">>, <<>>),
catch rabbit_vhost:add(<<"closed">>, <<>>),
catch rabbit_vhost:add(<<"readonly">>, <<>>),
Rights = <<"^(seckill|amq)\\..*">>,
rabbit_auth_backend_internal:set_permissions(<<"weak">>, <<"readonly">>, <<"^$">>, <<"^$">>, <<".*">>, <<>>),
rabbit_auth_backend_internal:set_permissions(<<"ours">>, <<"/">>, Rights, Rights, Rights, <<>>).
"""


@pytest.fixture(scope="module")
def guarded(rabbit: RabbitServer) -> RabbitServer:
    """A server with a vhost that `weak` may enter and read only, and one that it may not enter."""
    rabbit.control("eval", USERS)
    return rabbit


async def test_a_broker_that_will_do_says_its_version(rabbit: RabbitServer) -> None:
    version = await check_broker(rabbit.url())
    assert version is not None
    assert int(version.split(".")[0]) >= 3


async def test_a_wrong_password_is_one_sentence(rabbit: RabbitServer) -> None:
    with pytest.raises(StartError, match="does not accept the user and password") as refused:
        await check_broker(rabbit.url(password="guess"))
    assert "guess" not in str(refused.value)


@pytest.mark.parametrize("vhost", ["closed", "not-there"])
async def test_a_vhost_that_cannot_be_entered_is_one_sentence(guarded: RabbitServer, vhost: str) -> None:
    with pytest.raises(StartError, match="does not let this user into the vhost"):
        await check_broker(guarded.url("weak", "weak", vhost))


async def test_missing_rights_are_one_sentence(guarded: RabbitServer) -> None:
    url = guarded.url("weak", "weak", "readonly")
    assert await check_broker(url) is not None
    with pytest.raises(StartError, match=r"may not do what seckill needs .*\^\(seckill\|amq\)"):
        await open_broker(url, Topology("0123456789", (5.0,)))


async def test_the_rights_that_are_named_suffice(guarded: RabbitServer) -> None:
    topology = Topology("abcd012345", (5.0,))
    link = Link(guarded.url("ours", "ours"), "test")
    await topology.check(link)
    channel = await topology.announcing_channel(link)
    await topology.declare_own(channel, topology.results)
    confirmed = await link.channel(confirms=True)
    await confirmed.basic_publish(b"", routing_key=topology.orders, mandatory=True)
    await link.close()


async def test_a_queue_with_other_properties_is_one_sentence(rabbit: RabbitServer) -> None:
    topology = Topology("beef012345", (5.0,))
    link = Link(rabbit.url(), "test")
    channel = await link.channel()
    await channel.queue_declare(topology.orders, durable=True, arguments=QUORUM | {"x-delivery-limit": 3})
    await link.close()
    with pytest.raises(StartError, match=r"other properties .* delete it"):
        await open_broker(rabbit.url(), topology)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("amqp://nowhere.invalid/", "is not known"),
        ("amqp://[::1", "cannot be understood"),
        ("amqp://127.0.0.1:port/", "cannot be understood"),
    ],
)
async def test_an_address_that_can_never_work_is_one_sentence(url: str, sentence: str) -> None:
    with pytest.raises(StartError, match=sentence):
        await check_broker(url)


async def test_a_broker_that_is_away_is_waited_for() -> None:
    assert await check_broker("amqp://127.0.0.1:1/") is None


@pytest.mark.parametrize(
    ("product", "version", "sentence"),
    [("RabbitMQ", "3.9.29", "3.9.29; seckill needs 3.10"), ("LavinMQ", "2.0.0", "is LavinMQ")],
)
def test_a_broker_that_is_too_old_or_another_is_one_sentence(product: str, version: str, sentence: str) -> None:
    connection: Any = SimpleNamespace(server_properties={"product": product, "version": version})
    with pytest.raises(StartError, match=sentence):
        _suitable(connection)
    connection = SimpleNamespace(server_properties={"product": "RabbitMQ", "version": "4.1.0-rc.1"})
    assert _suitable(connection) == "4.1.0-rc.1"


def test_the_urls_own_heartbeat_is_left_alone() -> None:
    assert with_heartbeat("amqp://h/v?heartbeat=30") == "amqp://h/v?heartbeat=30"
    assert with_heartbeat("amqp://h/v?x=1") == "amqp://h/v?x=1&heartbeat=10"
    assert with_heartbeat("amqps://u:p%40@h:1/%2F") == "amqps://u:p%40@h:1/%2F?heartbeat=10"


async def test_doctor_knows_the_broker(rabbit: RabbitServer, sqlite_database: str) -> None:
    assert "none configured" in (await _broker(Settings())).says
    assert "answers" in (await _broker(Settings(broker_url=rabbit.url()))).says
    said = await _broker(Settings(broker_url=rabbit.url(), database_url=sqlite_database))
    ledger = open_ledger(sqlite_database)
    assert f"seckill.{fingerprint(await ledger.id_key())[:8]}" in said.says
    await ledger.close()
    with pytest.raises(SeckillError, match="does not answer: start it"):
        await _broker(Settings(broker_url="amqp://127.0.0.1:1/"))
