"""Settings about who may come in, and how often."""

from dataclasses import dataclass, field
from typing import Literal

from seckill.settings import kinds
from seckill.settings.redaction import Secret
from seckill.settings.setting import about


@dataclass(frozen=True, kw_only=True)
class DoorSettings:
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
    beacon_url: str = field(
        default="",
        metadata=about(
            kinds.beacon_url,
            "Where draws of sales with `beacon` get their public value, an address of drand's HTTP API with `{round}` "
            "in it; when empty, an operator gives the value.",
        ),
    )
    beacon_genesis_s: int = field(
        default=1_692_803_367,
        metadata=about(
            kinds.whole(0, 10_000_000_000),
            "When its first value was published, in Unix time; drand's quicknet's.",
            "seconds",
        ),
    )
    beacon_period_s: int = field(
        default=3,
        metadata=about(kinds.whole(1, 86_400), "How long after one value the next is published.", "seconds"),
    )
    beacon_within_s: int = field(
        default=600,
        metadata=about(
            kinds.whole(10, 604_800),
            "How long a draw waits for a value after it should have been published; then it is made by the seed alone.",
            "seconds",
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
    claims_per_second: int = field(
        default=100,
        metadata=about(
            kinds.whole(0, 1_000_000),
            "Claims of one buyer in a second, on each API process, above which they are refused with 429; 0: no limit.",
            "claims",
        ),
    )
