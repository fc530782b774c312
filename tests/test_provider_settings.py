"""The keys of payment providers: in the variable or in a file, two while one is being changed, and never repeated."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from seckill.backends.payment.provider_choice import open_provider
from seckill.cli.commands.doctor import CHECKS
from seckill.errors import ProviderUnavailable, SettingsError
from seckill.operations.doctor.examination import Health
from seckill.operations.production_refusals import refuse_make_believe
from seckill.settings import TABLE, Secret, Settings, missing_for_payment, read, require_production, shown, written
from tests.backends.payment.alipay_stand_in import AlipayStandIn, key_pair, private_pem, public_pem
from tests.backends.payment.stand_in import served
from tests.backends.payment.stripe_stand_in import KEY, OLD_SECRET, SECRET, StripeStandIn
from tests.backends.payment.wechat_stand_in import API_KEY, KEY_ID, OLD_API_KEY, WeChatStandIn

PRIVATE, PUBLIC, NEXT = private_pem(key_pair("a")), public_pem(key_pair("a")), public_pem(key_pair("next"))


def problems(**given: str) -> list[str]:
    with pytest.raises(SettingsError) as refused:
        read({f"SECKILL_{name.upper()}": value for name, value in given.items()})
    return refused.value.problems


def value(name: str, text: str) -> Any:
    return getattr(read({f"SECKILL_{name.upper()}": text}), name)


@pytest.mark.parametrize(
    ("name", "text", "meant"),
    [
        ("stripe_key", KEY, Secret(KEY)),
        ("stripe_webhook_secrets", f"{SECRET}, {OLD_SECRET}", (Secret(SECRET), Secret(OLD_SECRET))),
        ("wechat_api_keys", f"{API_KEY},{OLD_API_KEY}", (Secret(API_KEY), Secret(OLD_API_KEY))),
        ("alipay_private_key", PRIVATE, Secret(PRIVATE)),
        ("alipay_private_key", PRIVATE.replace("\n", "\\n"), Secret(PRIVATE)),
        ("alipay_public_keys", PUBLIC + NEXT, (PUBLIC, NEXT)),
    ],
)
def test_in_the_variable_or_in_a_file(name: str, text: str, meant: Any, tmp_path: Path) -> None:
    assert value(name, text) == meant
    file = tmp_path / "key"
    file.write_text(text.replace("\\n", "\n") + "\n")
    assert value(name, str(file)) == meant
    again = written(meant)
    assert value(name, again) == meant, "as it is handed on to a process of ours"


def test_keys_of_wechat_pay_have_names(tmp_path: Path) -> None:
    file = tmp_path / "wechat.pem"
    file.write_text(PUBLIC)
    found = value("wechat_public_keys", f"{KEY_ID}={file}, PUB_KEY_ID_2={file}")
    assert found == (f"{KEY_ID}={PUBLIC}", f"PUB_KEY_ID_2={PUBLIC}")
    assert value("wechat_public_keys", written(found)) == found
    assert problems(wechat_public_keys=str(file)) == [
        "SECKILL_WECHAT_PUBLIC_KEYS must say which key it is: PUB_KEY_ID_…=PATH for WeChat Pay's public key, or the "
        "path of its platform certificate."
    ]


def pem_of(key: Any) -> str:
    form = serialization.PrivateFormat.PKCS8
    return str(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode())


WEAK = pem_of(rsa.generate_private_key(public_exponent=65537, key_size=1024))
CURVE = pem_of(ec.generate_private_key(ec.SECP256R1()))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("stripe_key", "pk_live_51Seckill0000000000", "is a publishable key"),
        ("stripe_key", "sk_live_short", "must be a secret or restricted key"),
        ("stripe_key", "/no/such/file", "or the path of a file that has it"),
        ("stripe_webhook_secrets", "whsec_short", "must be the signing secret"),
        ("stripe_webhook_secrets", ",".join([SECRET] * 5), "must be 1 to 4"),
        ("alipay_private_key", WEAK, "at least 2048 bits"),
        ("alipay_private_key", CURVE, "must be an RSA key"),
        ("alipay_private_key", PUBLIC, "must be a private key"),
        ("alipay_public_keys", PRIVATE, "has a private key in it"),
        ("alipay_public_keys", PUBLIC.replace("MII", "MIX"), "must be a public key"),
        ("alipay_public_keys", "/", "or the path of a file"),
        ("wechat_api_keys", "short", "must be the APIv3 key"),
        ("wechat_api_keys", "a" * 32, "must be the APIv3 key"),
        ("wechat_serial", "no serial", "letters and digits"),
        ("public_url", "http://sale.example.com", "must begin with https://"),
        ("public_url", "https://sale.example.com/?a=1", "must have no ?"),
        ("stripe_url", "https://user@host/", "must begin with https://"),
        ("payment_provider", "paypal", "must be sandbox, callback, stripe, alipay, wechat or"),
    ],
)
def test_what_is_weak_or_wrong_is_one_sentence_without_the_key(name: str, text: str, sentence: str) -> None:
    [problem] = problems(**{name: text})
    assert sentence in problem
    assert problem.startswith(f"SECKILL_{name.upper()} ")
    secret_parts = [line for line in text.splitlines() if len(line) > 30 and "-----" not in line]
    assert not any(part in problem for part in secret_parts)


@pytest.mark.parametrize(
    "side", [StripeStandIn(), AlipayStandIn(), WeChatStandIn()], ids=lambda side: type(side).__name__
)
def test_a_role_says_what_is_missing(side: Any) -> None:
    side.url = "https://provider.example.com"
    settings = replace(side.settings(), redis_url="redis://x", database_url="sqlite:///x")
    assert missing_for_payment(settings) == []
    require_production(settings, "keeper")
    empty = {name: getattr(Settings(), name) for name in Settings.__dataclass_fields__}
    bare = Settings(payment_provider=settings.payment_provider, redis_url="redis://x", database_url="sqlite:///x")
    with pytest.raises(SettingsError) as refused:
        require_production(bare, "keeper")
    assert refused.value.problems == missing_for_payment(bare)
    assert all(problem.startswith("Set SECKILL_") for problem in refused.value.problems)
    require_production(bare, "worker")
    for name in ("public_url", f"{settings.payment_provider}_private_key", "stripe_key"):
        if getattr(settings, name, None):
            without = replace(settings, **{name: empty[name]})
            assert [f"SECKILL_{name.upper()}" in line for line in missing_for_payment(without)] == [True]


def test_a_page_of_the_shops_and_one_of_the_provider_do_not_go_together() -> None:
    assert problems(payment_provider="alipay", pay_url="https://shop.example.com/pay") == [
        "Leave SECKILL_PAY_URL empty: the payment provider has a page of its own to pay on."
    ]


def test_a_role_does_not_start_in_test_mode_by_mistake() -> None:
    live = Secret(KEY.replace("_test_", "_live_"))
    for settings, test in (
        (StripeStandIn().settings(), True),
        (StripeStandIn().settings(stripe_key=live), False),
        (AlipayStandIn().settings(alipay_url="https://openapi-sandbox.dl.alipaydev.com/gateway.do"), True),
    ):
        provider = open_provider(settings)
        if test:
            with pytest.raises(SettingsError, match="in test mode"):
                refuse_make_believe(settings, provider)
        else:
            refuse_make_believe(settings, provider)
        refuse_make_believe(replace(settings, rehearsal="on"), provider)


@pytest.mark.parametrize(
    ("kind", "says"),
    [(StripeStandIn, "Stripe knows the key"), (AlipayStandIn, "knows the app"), (WeChatStandIn, "knows the merchant")],
)
async def test_the_doctor_asks_the_provider(kind: Any, says: str) -> None:
    async with served(kind()) as side:
        settings = side.settings()
        health = await CHECKS["payment"](settings)
        assert isinstance(health, Health)
        assert (says in health.says, health.mend) == (True, [])
        side.trouble("away")
        with pytest.raises(ProviderUnavailable):
            await CHECKS["payment"](settings)
    bare = await CHECKS["payment"](Settings(payment_provider=settings.payment_provider))
    assert isinstance(bare, Health)
    assert "Set SECKILL_PUBLIC_URL" in bare.mend[0]


def test_no_key_is_ever_shown() -> None:
    settings = [StripeStandIn().settings(), AlipayStandIn().settings(), WeChatStandIn().settings()]
    secrets = (KEY, SECRET, API_KEY, private_pem(key_pair("alipay app")), private_pem(key_pair("wechat merchant")))
    for each, secret in itertools.product(settings, secrets):
        assert secret not in repr(each)
        assert not any(secret in shown(setting, each) for setting in TABLE)
