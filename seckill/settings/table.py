"""The fields of `Settings` are the one table from which reading, checks, `doctor` and the docs follow."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from seckill.errors import SettingsError
from seckill.settings import kinds, provider_keys
from seckill.settings.conflicts import conflicts
from seckill.settings.secrets import Secret as Secret  # part of what this module offers
from seckill.settings.secrets import redact_url
from seckill.settings.setting import PREFIX, Setting, about, kept, written
from seckill.settings.unknown_names import unknown_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is not set is None, or an empty URL."""

    redis_url: str = field(
        default="",
        metadata=about(
            kinds.url("redis", "rediss", "unix", "memory"),
            "Where Valkey or Redis is, also `redis+cluster://…` or `redis+sentinel://…/name`; when empty, `seckill up` "
            "starts one of its own; `memory://` keeps nothing.",
        ),
    )
    database_url: str = field(
        default="",
        metadata=about(
            kinds.url("sqlite", "postgresql", "postgres", "mysql", "mariadb"),
            "Where the ledger is; when empty, `seckill up` keeps it in SQLite in the data folder.",
        ),
    )
    broker_url: str = field(
        default="",
        metadata=about(
            kinds.url("amqp", "amqps"),
            "RabbitMQ, to carry orders from the streams to the workers; when empty, workers read the streams.",
        ),
    )
    alarm_url: str = field(
        default="",
        metadata=about(
            kinds.url("http", "https"),
            "Where alarms are sent to, as a POST with JSON; when empty, they are only logged.",
        ),
    )
    data_dir: Path = field(
        default=Path(".seckill"),
        metadata=about(Path, "Folder in which `seckill up` keeps its servers' data and its secrets."),
    )
    host: str = field(default="127.0.0.1", metadata=about(str, "Address that the API listens on."))
    port: int = field(
        default=8000,
        metadata=about(kinds.whole(0, 65_535), "Port that the API listens on; 0 takes any free one."),
    )
    jwt_secret: Secret | None = field(
        default=None,
        metadata=about(kinds.hmac_secret, "Secret that signs buyers' tokens (HS256).", "≥ 32 bytes"),
    )
    jwt_secrets: tuple[tuple[str, Secret], ...] = field(
        default=(),
        metadata=about(
            kinds.named_secrets,
            "Secrets by the `kid` of the tokens that they sign (HS256), also beside `SECKILL_JWT_SECRET`, so that one "
            "can be replaced by another.",
            "kid=secret,…",
        ),
    )
    jwt_public_key: str | None = field(
        default=None,
        metadata=about(
            kinds.public_key,
            "Instead of the secret: the public key (RSA, P-256 or Ed25519) of whoever signs buyers' tokens.",
            "PEM or path",
        ),
    )
    jwks_url: str = field(
        default="",
        metadata=about(
            kinds.url("http", "https"),
            "Where the issuer of buyers' tokens publishes its keys (a JSON Web Key Set), which are then followed.",
        ),
    )
    jwt_issuer: str | None = field(
        default=None, metadata=about(str, "When set, the `iss` that buyers' tokens must have.")
    )
    jwt_audience: str | None = field(
        default=None, metadata=about(str, "When set, the `aud` that buyers' tokens must have.")
    )
    admin_key: Secret | None = field(
        default=None,
        metadata=about(kinds.admin_key, "Operators send it as their bearer token.", "≥ 16 characters"),
    )
    admin_key_old: Secret | None = field(
        default=None,
        metadata=about(kinds.admin_key, "While the admin key is replaced: the one before, as good as the new one."),
    )
    payment_provider: str = field(
        default="sandbox",
        metadata=about(
            kinds.provider,
            "Who takes the money: `sandbox` (nobody), `callback` (your own payment side tells us), `stripe`, `alipay`, "
            "`wechat`, or a factory of yours such as `shop.payment:make`.",
        ),
    )
    payment_secret: Secret | None = field(
        default=None,
        metadata=about(kinds.hmac_secret, "Secret that signs payment callbacks and refund requests.", "≥ 32 bytes"),
    )
    payment_secret_old: Secret | None = field(
        default=None,
        metadata=about(
            kinds.hmac_secret,
            "While the payment secret is replaced: the one before. Callbacks may be signed with either; refund "
            "requests are signed with both.",
        ),
    )
    refund_url: str = field(
        default="",
        metadata=about(
            kinds.url("http", "https"),
            "Where `callback` asks for refunds, as a signed POST; when empty, they wait to be made by hand.",
        ),
    )
    public_url: str = field(
        default="",
        metadata=about(
            provider_keys.https_url,
            "Where this installation is reached from outside, such as `https://sale.example.com`: payment providers "
            "send buyers back there, and their notices.",
        ),
    )
    stripe_key: Secret | None = field(
        default=None,
        metadata=about(provider_keys.stripe_key, "Stripe's secret key, or a restricted one.", "text or path"),
    )
    stripe_webhook_secrets: tuple[Secret, ...] = field(
        default=(),
        metadata=about(
            provider_keys.stripe_webhook_secrets,
            "What Stripe signs its notices with; two while it is being changed.",
            "texts or path",
        ),
    )
    stripe_url: str = field(
        default="https://api.stripe.com",
        metadata=about(provider_keys.https_url, "Where Stripe's API is."),
    )
    alipay_app_id: str = field(
        default="", metadata=about(provider_keys.account, "The app at Alipay that the money is taken for.")
    )
    alipay_private_key: Secret | None = field(
        default=None,
        metadata=about(
            provider_keys.rsa_private_key,
            "The app's private key (RSA2), which signs requests to Alipay.",
            "PEM or path",
        ),
    )
    alipay_public_keys: tuple[str, ...] = field(
        default=(),
        metadata=about(
            provider_keys.rsa_public_keys,
            "Alipay's public key, by which its notices are known; two while it is being changed.",
            "PEM or path",
        ),
    )
    alipay_seller_id: str = field(
        default="",
        metadata=about(
            provider_keys.account, "When set, the seller (2088…) that notices of Alipay's must be for, as well."
        ),
    )
    alipay_url: str = field(
        default="https://openapi.alipay.com/gateway.do",
        metadata=about(provider_keys.https_url, "Alipay's gateway."),
    )
    wechat_app_id: str = field(
        default="", metadata=about(provider_keys.account, "The app (wx…) that WeChat Pay takes the money for.")
    )
    wechat_merchant_id: str = field(
        default="", metadata=about(provider_keys.account, "The merchant's number at WeChat Pay.")
    )
    wechat_private_key: Secret | None = field(
        default=None,
        metadata=about(
            provider_keys.rsa_private_key,
            "The merchant's private key (apiclient_key.pem), which signs requests to WeChat Pay.",
            "PEM or path",
        ),
    )
    wechat_serial: str = field(
        default="",
        metadata=about(provider_keys.account, "The serial number of the merchant's certificate for that key."),
    )
    wechat_api_keys: tuple[Secret, ...] = field(
        default=(),
        metadata=about(
            provider_keys.wechat_api_keys,
            "The APIv3 key, with which notices of WeChat Pay's are encrypted; two while it is being changed.",
            "texts or path",
        ),
    )
    wechat_public_keys: tuple[str, ...] = field(
        default=(),
        metadata=about(
            provider_keys.wechat_public_keys,
            "WeChat Pay's public key as `PUB_KEY_ID_…=PATH`, or its platform certificate as a path; several with "
            "commas between them.",
            "PEM or path",
        ),
    )
    wechat_url: str = field(
        default="https://api.mch.weixin.qq.com",
        metadata=about(provider_keys.https_url, "Where WeChat Pay's API is."),
    )
    shop_name: str = field(default="seckill", metadata=about(str, "The name at the top of the buyers' pages."))
    sign_in_url: str = field(
        default="",
        metadata=about(
            kinds.url("http", "https"),
            "Where the buyers' pages send people who are not signed in.",
        ),
    )
    pay_url: str = field(
        default="",
        metadata=about(
            kinds.url("http", "https"),
            "Where the buyers' pages send people to pay, with `order_id` in the query.",
        ),
    )
    image_hosts: tuple[str, ...] = field(
        default=(),
        metadata=about(
            kinds.hosts,
            "Whose pictures a sale may show, such as `cdn.example.com,*.img.example.com`; they are loaded over https.",
        ),
    )
    pass_s: int = field(
        default=1800,
        metadata=about(
            kinds.whole(60, 86_400),
            "How long a pass is good for, and how long before its sale begins it can be had.",
            "seconds",
        ),
    )
    check_url: str = field(
        default="",
        metadata=about(
            kinds.url("http", "https"),
            "Where a captcha service verifies answers (`siteverify`), for sales whose `pass` is `check`.",
        ),
    )
    check_secret: Secret | None = field(
        default=None, metadata=about(kinds.service_secret, "The secret that the captcha service gave you.")
    )
    check_site_key: str = field(default="", metadata=about(str, "The key that its widget has on the buyers' pages."))
    check_script_url: str = field(
        default="",
        metadata=about(
            kinds.url("http", "https"),
            "Its widget's script, such as `https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit`.",
        ),
    )
    check_hosts: tuple[str, ...] = field(
        default=(),
        metadata=about(kinds.hosts, "Other hosts that its widget needs, such as `*.hcaptcha.com`."),
    )
    check_fallback: Literal["work", "refuse", "allow"] = field(
        default="work",
        metadata=about(
            kinds.one_of("work", "refuse", "allow"),
            "When the service does not answer: a proof of work instead, no pass for now (503), or a pass for all.",
        ),
    )
    check_within_s: float = field(
        default=3.0,
        metadata=about(kinds.decimal(0.1, 30), "How long the service may take to answer.", "seconds"),
    )
    risk_url: str = field(
        default="",
        metadata=about(
            kinds.url("http", "https"),
            "Asked whenever somebody wants a pass, as a POST with JSON: `allow`, `deny` or `challenge`; when empty, "
            "everybody is challenged.",
        ),
    )
    risk_fallback: Literal["challenge", "allow", "deny"] = field(
        default="challenge",
        metadata=about(
            kinds.one_of("challenge", "allow", "deny"), "What counts as its answer when it does not give one in time."
        ),
    )
    risk_within_s: float = field(
        default=1.0,
        metadata=about(kinds.decimal(0.05, 30), "How long it may take to answer.", "seconds"),
    )
    jwt_groups_claim: str = field(
        default="groups",
        metadata=about(str, "The claim of a buyer's token that names the groups that the buyer is in."),
    )
    origins: tuple[str, ...] = field(
        default=(),
        metadata=about(
            kinds.origins,
            "Pages of which other origins may sell with `embed.js` or call the buyers' API, such as "
            "`https://shop.example.com,http://localhost:3000`; when empty, only our own.",
        ),
    )
    demo_sign_in: Literal["on", "off"] = field(
        default="off",
        metadata=about(
            kinds.one_of("on", "off"),
            "`on`: anybody may sign in under any name, as with `seckill up --demo`; never in production.",
        ),
    )
    rehearsal: Literal["off", "on"] = field(
        default="off",
        metadata=about(
            kinds.one_of("off", "on"),
            "`on`: this is a test, so the roles start with the sandbox, demo sign-in or failpoints as well, and every "
            "page says so.",
        ),
    )
    lanes: int = field(
        default=16,
        metadata=about(
            kinds.whole(1, 256),
            "How many lanes there are. A round gets one of them, or as many as its sale asks for.",
        ),
    )
    pay_within_s: int = field(
        default=900,
        metadata=about(kinds.whole(1, 2_592_000), "Time to pay for an order when the sale does not say.", "seconds"),
    )
    cool_down_s: int = field(
        default=5,
        metadata=about(
            kinds.whole(0, 3_600),
            "How long a buyer who cancelled an order, or did not pay for it in time, waits before buying again, when "
            "the sale does not say; twice as long with each such order of a round, up to an hour; 0: not at all.",
            "seconds",
        ),
    )
    lapse_alarm_share: float = field(
        default=0.5,
        metadata=about(
            kinds.decimal(0, 1),
            "Share of a round's orders, cancelled or not paid in time, at which there is an alarm; 0: never.",
        ),
    )
    lapse_alarm_orders: int = field(
        default=20,
        metadata=about(
            kinds.whole(1, 1_000_000_000), "Orders that a round must have before that share counts.", "orders"
        ),
    )
    confirm_within_s: float = field(
        default=5.0,
        metadata=about(
            kinds.decimal(0.1, 30),
            "How long a claim waits to be written at most, in a sale whose `confirm` is `ledger`; then it is answered "
            "`unknown`, to be repeated with the same key.",
            "seconds",
        ),
    )
    retry_delays_s: tuple[float, ...] = field(
        default=(5.0, 10.0, 30.0),
        metadata=about(
            kinds.delays, "Waits before a failed order is tried again; then it is a dead letter.", "seconds"
        ),
    )
    claim_idle_s: float = field(
        default=5.0,
        metadata=about(kinds.decimal(0.1, 3600), "Silence after which a worker's entries go to another.", "seconds"),
    )
    backlog_max: int = field(
        default=100_000,
        metadata=about(
            kinds.whole(1, 100_000_000),
            "Orders waiting in a lane at which more claims are refused as `overloaded`.",
            "orders",
        ),
    )
    durability: Literal["strict", "fast"] = field(
        default="strict",
        metadata=about(
            kinds.one_of("strict", "fast"),
            "`strict`: an order is on disk before its answer; `fast`: within a second after it.",
        ),
    )
    replica_acks: int | None = field(
        default=None,
        metadata=about(
            kinds.whole(0, 9),
            "Replicas that must have an order before its answer; when empty: 1 with `strict` on a cluster or behind "
            "Sentinel, otherwise 0.",
            "replicas",
        ),
    )
    gate_timeout_s: float = field(
        default=1.0,
        metadata=about(
            kinds.decimal(0.01, 60), "Wait for the gate after which a claim's result is `unknown`.", "seconds"
        ),
    )
    claims_per_second: int = field(
        default=100,
        metadata=about(
            kinds.whole(0, 1_000_000),
            "Claims of one buyer in a second, on each API process, above which they are refused with 429; 0: no limit.",
            "claims",
        ),
    )
    connections_max: int = field(
        default=50_000,
        metadata=about(
            kinds.whole(1, 10_000_000),
            "Connections to one API process above which more are refused with 503; fewer, where it may not open so "
            "many files.",
            "connections",
        ),
    )
    connections_per_address: int | None = field(
        default=None,
        metadata=about(
            kinds.whole(1, 10_000_000),
            "Connections of one address (IPv4, or a /64 of IPv6) to one API process above which more are refused with "
            "429; when empty, a fourth of all.",
            "connections",
        ),
    )
    claims_per_address: int = field(
        default=100,
        metadata=about(
            kinds.whole(0, 1_000_000),
            "Claims of one address in a second, on each API process, above which they are refused with 429; ten times "
            "as many at once; 0: no limit.",
            "claims",
        ),
    )
    passes_per_address: int = field(
        default=50,
        metadata=about(
            kinds.whole(0, 1_000_000), "The same for asking for a pass, or for the challenge before it.", "requests"
        ),
    )
    entries_per_address: int = field(
        default=100, metadata=about(kinds.whole(0, 1_000_000), "The same for joining the line of a sale.", "requests")
    )
    sign_ins_per_address: int = field(
        default=20,
        metadata=about(kinds.whole(0, 1_000_000), "The same for signing in with `SECKILL_DEMO_SIGN_IN`.", "sign-ins"),
    )
    streams_per_address: int = field(
        default=2_000,
        metadata=about(
            kinds.whole(0, 1_000_000),
            "Long polls, event streams and sockets of one address that are open on one API process, above which more "
            "are refused with 429; 0: no limit.",
            "streams",
        ),
    )
    trusted_proxies: tuple[kinds.Network, ...] = field(
        default=(),
        metadata=about(
            kinds.networks,
            "Your own proxies, as addresses or networks such as `10.0.0.0/8`: they may have any number of "
            "connections, and the client's address is taken from the `X-Forwarded-For` that they write.",
        ),
    )
    metrics: Literal["public", "operator"] = field(
        default="operator",
        metadata=about(
            kinds.one_of("public", "operator"),
            "Who may read `/metrics` on the API's port: those with the admin key, or everybody, who then learns "
            "exactly how much is sold.",
        ),
    )
    metrics_port: int | None = field(
        default=None,
        metadata=about(
            kinds.whole(1, 65_535),
            "Port on which a role serves `/metrics`, `/healthz` and `/readyz` without a key, or `seckill up` the "
            "figures of all roles; when empty, none.",
        ),
    )
    metrics_host: str = field(
        default="127.0.0.1",
        metadata=about(str, "Address of that port; one that strangers cannot reach."),
    )
    audit_every_s: float = field(
        default=1.0,
        metadata=about(
            kinds.decimal(0, 86_400), "How often the keeper checks that everything adds up; 0: never.", "seconds"
        ),
    )
    audit_pauses: Literal["off", "on"] = field(
        default="off",
        metadata=about(
            kinds.one_of("off", "on"),
            "`on`: the keeper pauses a sale when its audit finds units or orders that do not add up, and resumes it if "
            "that turns out to be false.",
        ),
    )
    events_kept_days: int = kept(
        30, "How long events can be read from the feed; who reads on after an older one is told to begin anew."
    )
    letters_kept_days: int = kept(
        90, "How long letters are kept about which all is decided: written after all, or discarded."
    )
    lines_kept_days: int = kept(
        365, "How long lines and draws of rounds that are over are kept, with all entries; never shorter than events."
    )
    webhook_private: Literal["off", "on"] = field(
        default="off",
        metadata=about(
            kinds.one_of("off", "on"),
            "`on`: webhooks may go to loopback and private addresses, and to any port from 1024 on. `seckill up` has "
            "it on unless it is set to `off`.",
        ),
    )
    log_format: Literal["auto", "json", "console"] = field(
        default="auto",
        metadata=about(
            kinds.one_of("auto", "json", "console"),
            "`json`, `console` for people, or `auto`: for people when there is a terminal.",
        ),
    )
    log_level: Literal["debug", "info", "warning", "error"] = field(
        default="info",
        metadata=about(
            kinds.one_of("debug", "info", "warning", "error"),
            "The least important events that are logged: `debug`, `info`, `warning` or `error`.",
        ),
    )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "Settings":
        """As the commands read them. Raises SettingsError with a sentence for everything that is wrong."""
        return read(environ)

    @property
    def knows_buyers(self) -> bool:
        """There is something to check buyers' tokens with."""
        return bool(self.jwt_secret or self.jwt_secrets or self.jwt_public_key or self.jwks_url)

    @property
    def in_memory(self) -> bool:
        """Gate and streams live in one process, and nothing of them is kept."""
        return self.redis_url.startswith("memory:")

    @property
    def replicas_to_wait_for(self) -> int:
        if self.replica_acks is not None:
            return self.replica_acks
        # There a replica takes over automatically, and whatever it does not have is lost.
        taken_over = self.redis_url.partition(":")[0].endswith(("+cluster", "+sentinel"))
        return int(taken_over and self.durability == "strict")

    def __repr__(self) -> str:
        # URLs carry passwords, so the generated one would tell them.
        return f"Settings({', '.join(f'{setting.name}={shown(setting, self)!r}' for setting in TABLE)})"


TABLE: tuple[Setting, ...] = tuple(
    Setting(name=item.name, default=written(item.default), **item.metadata) for item in fields(Settings)
)


def read(environ: Mapping[str, str]) -> Settings:
    """Raises SettingsError with a sentence for everything that is wrong, not only for the first."""
    problems: list[str] = []
    values: dict[str, Any] = {}
    for setting in TABLE:
        text = environ.get(setting.variable, "")
        # An empty variable counts as not set, as in compose files.
        if text.strip():
            try:
                values[setting.name] = setting.kind(text if setting.secret else text.strip())
            except ValueError as error:
                problems.append(f"{setting.variable} {error}.")
    problems += unknown_names(environ, [setting.variable for setting in TABLE], PREFIX)
    problems += conflicts(values)
    if problems:
        raise SettingsError(problems)
    return Settings(**values)


def shown(setting: Setting, settings: Settings) -> str:
    """A setting's value as people may see it."""
    value = getattr(settings, setting.name)
    return "***" if setting.secret and value not in (None, ()) else redact_url(written(value))
