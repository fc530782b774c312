import base64
import hashlib
import pickle
import secrets
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from seckill.domain.operator import Role as OperatorRole
from seckill.errors import SettingsError
from seckill.settings import TABLE, Role, Secret, Settings, read, require_production, shown
from seckill.settings.kinds import ROLES
from seckill.settings.redaction import redact_url
from seckill.settings.secret_strength import SECRET_BITS_MIN, bits

GOOD_SECRET = "tK7rX2vQ9mB4nL6pW8sD1fG3hJ5kZ0cYuE"
GOOD_KEY = "4fd1b7a90c2e8d635f10"
PEM = """-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
"""


def problems(**variables: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        read({f"SECKILL_{name.upper()}": value for name, value in variables.items()})
    return caught.value.problems


def test_nothing_set_gives_the_defaults() -> None:
    settings = read({"PATH": "/bin"})
    assert settings == Settings()
    assert settings.redis_url == settings.database_url == settings.broker_url == ""
    assert settings.data_dir == Path(".seckill")
    assert (settings.host, settings.port, settings.lanes, settings.pay_within_s) == (
        "127.0.0.1",
        8000,
        16,
        900,
    )
    assert settings.retry_delays_s == (5.0, 10.0, 30.0)
    assert (settings.jwt_secret, settings.jwt_public_key, settings.admin_key) == (None, None, None)


def test_every_default_is_what_reading_it_gives() -> None:
    for setting in TABLE:
        if setting.default:
            assert read({setting.variable: setting.default}) == Settings(), setting.variable


def test_everything_can_be_set() -> None:
    settings = read(
        {
            "SECKILL_REDIS_URL": "redis+cluster://:pw@valkey:6379/0",
            "SECKILL_DATABASE_URL": " postgresql+asyncpg://shop@db/shop ",
            "SECKILL_BROKER_URL": "amqps://mq",
            "SECKILL_DATA_DIR": "/var/lib/seckill",
            "SECKILL_PORT": "0",
            "SECKILL_JWT_SECRET": GOOD_SECRET,
            "SECKILL_JWT_ISSUER": "https://shop.example",
            "SECKILL_ADMIN_KEY": GOOD_KEY,
            "SECKILL_RETRY_DELAYS_S": "0.5, 1",
            "SECKILL_CLAIM_IDLE_S": "2.5",
            "SECKILL_DURABILITY": "FAST",
            "SECKILL_LOG_FORMAT": "json",
        }
    )
    assert settings.redis_url == "redis+cluster://:pw@valkey:6379/0"
    assert settings.database_url == "postgresql+asyncpg://shop@db/shop"
    assert settings.data_dir == Path("/var/lib/seckill")
    assert settings.jwt_secret == Secret(GOOD_SECRET)
    assert settings.retry_delays_s == (0.5, 1.0)
    assert (settings.port, settings.claim_idle_s, settings.durability) == (0, 2.5, "fast")
    assert settings.jwt_issuer == "https://shop.example"


def test_empty_counts_as_not_set() -> None:
    assert read({setting.variable: " " for setting in TABLE}) == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "70000"),
        ("port", "-1"),
        ("port", "80a"),
        ("port", "８０００"),
        ("port", "9" * 5000),
        ("port", "tcp://10.0.0.1:8000"),
        ("lanes", "0"),
        ("lanes", "257"),
        ("lanes", "1.5"),
        ("pay_within_s", "0"),
        ("backlog_max", "many"),
        ("claim_idle_s", "nan"),
        ("claim_idle_s", "inf"),
        ("claim_idle_s", "0"),
        ("gate_timeout_s", "-1"),
        ("retry_delays_s", "5,,30"),
        ("retry_delays_s", "5;10"),
        ("retry_delays_s", ",".join(["1"] * 11)),
        ("durability", "maybe"),
        ("log_format", "xml"),
        ("log_level", "loud"),
        ("redis_url", "localhost:6379"),
        ("redis_url", "http://valkey"),
        ("database_url", "oracle://db/shop"),
        ("broker_url", "kafka://mq"),
    ],
)
def test_a_wrong_value_is_one_sentence_that_says_what_to_set(name: str, value: str) -> None:
    [problem] = problems(**{name: value})
    assert problem.startswith(f"SECKILL_{name.upper()} must ")
    assert problem.endswith(".")
    assert "\n" not in problem


def test_all_problems_are_told_at_once() -> None:
    assert len(problems(port="x", durability="x", jwt_secret="short", admin_key="short", colour="red")) == 5


def test_a_wrong_url_does_not_tell_its_password() -> None:
    assert "hunter2" not in problems(redis_url="user:hunter2@valkey:6379")[0]


# S5: a secret that can be guessed never starts anything.
@pytest.mark.parametrize(
    "secret",
    [
        "secret",
        "a" * 64,
        "ab" * 32,
        "your-256-bit-secret-your-256-bit-secret",
        "ChangeMe-ChangeMe-ChangeMe-ChangeMe!",
        "correct-horse-Password-battery-staple",
        "0123456789" * 4,
        "abcdefghijklmnopqrstuvwxyz0123456789",
        "qwertyuiopasdfghjklzxcvbnm1234567890",
        "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p",
        "deadbeef" * 6,
        "2026-11-11-2026-11-12-2026-11-13-2026",
        "seckill-production-token-key-2026-11",
        "admin1stratorAdmin1stratoradmin1strator",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "00112233445566778899aabbccddeeff",
        hashlib.sha256(b"").hexdigest(),
        hashlib.sha256(b"password").hexdigest(),
        hashlib.md5(b"password", usedforsecurity=False).hexdigest(),
        base64.b64encode(hashlib.sha256(b"admin").digest()).decode(),
        base64.b64encode(b"correct horse battery staple!").decode(),
        b"summer sunshine winter".hex(),
        "AllWorkAndNoPlayMakesJackADullBoy",
        "ChangeThisToSomethingLongAndRandom1!",
        "the quick brown fox jumps over the lazy dog",
        "correct horse battery staple correct",
        "!@#$%^&*()_+!@#$%^&*()_+QWERTYUIOP",
        "AaBbCcDdEeFfGgHhIiJjKkLlMmNnOoPp",
        "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6",
        "我的密码是一二三四五六七八九十",
        GOOD_SECRET[:31],
        f"{GOOD_SECRET}\n",
    ],
)
def test_a_bad_token_secret_is_refused_and_not_told(secret: str) -> None:
    [problem] = problems(jwt_secret=secret)
    assert problem.startswith("SECKILL_JWT_SECRET ")
    assert secret not in problem.removeprefix("SECKILL_JWT_SECRET ")


def test_the_length_of_a_secret_counts_in_bytes() -> None:
    secret = "秒杀系统的密钥很长很难猜到"  # 13 characters, 39 bytes
    assert read({"SECKILL_JWT_SECRET": secret}).jwt_secret == Secret(secret)


@pytest.mark.parametrize(
    "key",
    [
        "short",
        "a" * 20,
        "admin-password-1234",
        "four words and spaces",
        "schlüssel-0123456789",
        "administrator1234",
        "Adm1n1strator2026",
        "qwertyuiopasdfghjkl",
        "0123456789abcdef",
        "1234123412341234",
        "JanuaryFebruaryMarch",
        "seckill-shop-admin-key",
        "cGFzc3dvcmRwYXNzd29yZA==",
        "P-a-s-s-w-o-r-d-1",
        "REPLACE_WITH_RANDOM",
        "AKIAIOSFODNN7EXAMPLE",
        "admin-2026-11-17",
        "112233445566778899",
        "3141592653589793238",
        "3.14159265358979323",
    ],
)
def test_a_bad_admin_key_is_refused(key: str) -> None:
    [problem] = problems(admin_key=key)
    assert problem.startswith("SECKILL_ADMIN_KEY ")
    assert key not in problem


RANDOM = {
    "openssl rand -base64 48": lambda: base64.b64encode(secrets.token_bytes(48)).decode(),
    "openssl rand -hex 24": lambda: secrets.token_hex(24),
    "secrets.token_urlsafe(32)": lambda: secrets.token_urlsafe(32),
    "uuid4 hex": lambda: uuid.uuid4().hex,
}


@pytest.mark.parametrize("made", RANDOM.values(), ids=RANDOM)
def test_random_text_is_never_taken_for_a_guess(made: Callable[[], str]) -> None:
    """Far from it: the least of many stays well above what is required."""
    assert min(bits(made()) for _ in range(1_000)) > SECRET_BITS_MIN + 8
    read({"SECKILL_JWT_SECRET": made(), "SECKILL_ADMIN_KEY": made()})


@pytest.mark.parametrize("made", [lambda: secrets.token_urlsafe(16), lambda: str(uuid.uuid4())], ids=["16", "uuid"])
def test_a_shorter_random_text_is_an_admin_key(made: Callable[[], str]) -> None:
    for _ in range(300):
        read({"SECKILL_ADMIN_KEY": made()})


def test_a_secret_that_can_be_guessed_is_refused_with_a_way_to_make_a_good_one() -> None:
    assert problems(admin_key="administrator1234")[0].endswith(
        "set it to random text, as `openssl rand -hex 24` makes it."
    )
    assert "`openssl rand -base64 48` makes it." in problems(jwt_secret="0123456789" * 4)[0]


def test_one_secret_is_not_used_for_two_things() -> None:
    assert problems(jwt_secret=GOOD_SECRET, admin_key=GOOD_SECRET) == [
        "Set SECKILL_ADMIN_KEY to something else than SECKILL_JWT_SECRET."
    ]
    for other in ("jwt_secret", "admin_key"):
        assert problems(**{other: GOOD_SECRET}, payment_secret=GOOD_SECRET) == [
            "Set SECKILL_PAYMENT_SECRET to something else than the other secrets."
        ]
    assert problems(jwt_secret=GOOD_SECRET, jwt_public_key=PEM) == [
        "Set SECKILL_JWT_SECRET or SECKILL_JWT_PUBLIC_KEY, not both."
    ]


def test_a_public_key_is_text_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "buyers.pem"
    file.write_text(PEM)
    for value in (PEM, PEM.replace("\n", "\\n"), str(file)):
        assert read({"SECKILL_JWT_PUBLIC_KEY": value}).jwt_public_key == PEM


def test_what_is_no_public_key_is_refused(tmp_path: Path) -> None:
    assert "path of a file" in problems(jwt_public_key="/nowhere/key.pem")[0]
    assert "private key" in problems(jwt_public_key=PEM.replace("PUBLIC", "PRIVATE"))[0]
    assert "PEM" in problems(jwt_public_key=PEM.replace("PUBLIC KEY", "CERTIFICATE"))[0]
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert "PEM" in problems(jwt_public_key=str(tmp_path / "binary"))[0]


def test_unknown_variables_are_refused_with_the_name_that_was_meant() -> None:
    assert problems(redis_ulr="redis://x") == ["SECKILL_REDIS_ULR is not a setting: did you mean SECKILL_REDIS_URL?"]
    assert problems(qwertz="1") == ["SECKILL_QWERTZ is not a setting: remove it."]


def test_variables_that_others_set_are_left_alone() -> None:
    assert (
        read(
            {
                "SECKILL_FAILPOINTS": "api.gate.admit.after=kill",
                "SECKILL_SERVICE_HOST": "10.0.0.7",
                "SECKILL_SERVICE_PORT_HTTP": "8000",
                "SECKILL_API_PORT": "tcp://10.0.0.7:8000",
                "SECKILL_API_PORT_8000_TCP_ADDR": "10.0.0.7",
            }
        )
        == Settings()
    )


@pytest.mark.parametrize(
    ("role", "missing"),
    [
        ("api", ["REDIS_URL", "DATABASE_URL", "ADMIN_KEY", "JWT_SECRET"]),
        ("worker", ["REDIS_URL", "DATABASE_URL"]),
        ("keeper", ["REDIS_URL", "DATABASE_URL"]),
    ],
)
def test_a_role_on_its_own_names_everything_that_is_missing(role: Role, missing: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        require_production(Settings(), role)
    found = caught.value.problems
    assert len(found) == len(missing)
    assert all(problem.startswith(f"Set SECKILL_{name}") for problem, name in zip(found, missing, strict=True))


def test_a_role_that_has_what_it_needs_is_content() -> None:
    urls = {"SECKILL_REDIS_URL": "redis://valkey", "SECKILL_DATABASE_URL": "sqlite:///x.db"}
    require_production(read(urls), "worker")
    require_production(read({**urls, "SECKILL_ADMIN_KEY": GOOD_KEY, "SECKILL_JWT_SECRET": GOOD_SECRET}), "api")
    require_production(read({**urls, "SECKILL_ADMIN_KEY": GOOD_KEY, "SECKILL_JWT_PUBLIC_KEY": PEM}), "api")


def test_secrets_hide_themselves() -> None:
    settings = read(
        {
            "SECKILL_JWT_SECRET": GOOD_SECRET,
            "SECKILL_ADMIN_KEY": GOOD_KEY,
            "SECKILL_REDIS_URL": "redis://u:hunter2@h",
        }
    )
    listing = " ".join(shown(setting, settings) for setting in TABLE)
    for text in (repr(settings), str(settings), f"{settings.jwt_secret}", f"{settings.admin_key!r}", listing):
        assert GOOD_SECRET not in text
        assert GOOD_KEY not in text
        assert "hunter2" not in text
    assert settings.jwt_secret is not None
    assert settings.jwt_secret.reveal() == GOOD_SECRET
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_shown_values_are_as_they_would_be_set() -> None:
    assert {setting.name: shown(setting, Settings()) for setting in TABLE} == {
        setting.name: setting.default for setting in TABLE
    }


@pytest.mark.parametrize(
    ("url", "redacted"),
    [
        ("redis://:pw@h:6379/0", "redis://:***@h:6379/0"),
        ("postgresql+asyncpg://shop:p%40w@db:5432/shop", "postgresql+asyncpg://shop:***@db:5432/shop"),
        ("amqp://u:p@ss/w#rd@mq/vhost", "amqp://u:***@mq/vhost"),
        ("two: redis://:a@h and mysql://x:b@i", "two: redis://:***@h and mysql://x:***@i"),
        ("unix:///run/valkey.sock?db=1&password=pw", "unix:///run/valkey.sock?db=1&password=***"),
        ("/v1/ws?access_token=abc.def&x=1", "/v1/ws?access_token=***&x=1"),
        ("redis://valkey:6379/0", "redis://valkey:6379/0"),
        ("sqlite:////var/lib/seckill/ledger.db", "sqlite:////var/lib/seckill/ledger.db"),
    ],
)
def test_passwords_in_urls_are_not_shown(url: str, redacted: str) -> None:
    assert redact_url(url) == redacted


def test_no_broker_without_streams() -> None:
    with pytest.raises(SettingsError, match="Leave SECKILL_BROKER_URL empty with memory://"):
        read({"SECKILL_REDIS_URL": "memory://", "SECKILL_BROKER_URL": "amqp://localhost"})


def test_origins_are_spelled_as_browsers_spell_them() -> None:
    given = "https://Shop.example.com, https://shop.example.com:443,http://localhost:3000,http://[::1]:80,http://a:0080"
    wanted = ("https://shop.example.com", "http://localhost:3000", "http://[::1]", "http://a")
    assert read({"SECKILL_ORIGINS": given}).origins == wanted
    assert read({}).origins == ()


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "null",
        "shop.example.com",
        "https://*.example.com",
        "https://shop.example.com/",
        "https://shop.example.com/path",
        "https://user@shop.example.com",
        "https://shop.example.com:0",
        "https://shop.example.com:65536",
        "https://shop.example.com?",
        "ws://shop.example.com",
        "file://",
        "https://商店.example",
        "https://a b",
        "https://a\r\nb",
        ",",
    ],
)
def test_what_is_no_origin_is_refused(origin: str) -> None:
    [problem] = problems(origins=f"https://good.example,{origin}")
    assert problem.startswith("SECKILL_ORIGINS must be a list of origins such as https://shop.example.com")


def test_too_many_origins_are_refused() -> None:
    [problem] = problems(origins=",".join(f"https://s{number}.example" for number in range(33)))
    assert problem == "SECKILL_ORIGINS must name at most 32 origins, not 33."


def test_signing_in_with_a_provider_needs_its_parts() -> None:
    assert problems(oidc_url="https://id.example.com") == [
        "Set SECKILL_PUBLIC_URL: the provider sends people back there.",
        "Set SECKILL_OIDC_CLIENT_ID: the provider knows the console by it.",
        "Set SECKILL_OIDC_ROLES: nobody has a role otherwise.",
    ]
    (problem,) = problems(oidc_url="http://id.example.com")
    assert "must begin with https://" in problem
    for wrong in ("sre", "root=sre", "admin=", "admin=sre,,"):
        (problem,) = problems(oidc_roles=wrong)
        assert "must be a list such as admin=sre,operator=sales" in problem
    assert read({"SECKILL_OIDC_ROLES": "admin=sre, operator=a=b"}).oidc_roles == (("admin", "sre"), ("operator", "a=b"))
    assert list(ROLES) == list(OperatorRole)
