"""The kinds of values that settings have.

A kind takes the text of a variable and returns its value, or raises ValueError with the end of a sentence that begins
with the variable's name. The text of a secret is never in that sentence.
"""

import math
import re
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from seckill.settings.redaction import Secret
from seckill.settings.secret_strength import (
    ADMIN_KEY_BITS_MIN,
    ADMIN_KEY_CHARS_MIN,
    SECRET_BITS_MIN,
    SECRET_BYTES_MIN,
    can_be_guessed,
)

Kind = Callable[[str], Any]

# A limit, because each forged token that does not name its key is tried with all of them.
KEYS_MAX = 8
_DELAYS_MAX = 10
_NETWORKS_MAX = 64
_HOSTS_MAX = 32
_ORIGINS_MAX = 32
_DEFAULT_PORTS = {"http": 80, "https": 443}

Network = IPv4Network | IPv6Network
ROLES = ("viewer", "operator", "admin")  # the same as in `seckill.domain.operator.Role`, which is in a higher layer


def whole(low: int, high: int) -> Kind:
    def parse(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}, not {text!r}")
        return int(text)

    return parse


def decimal(low: float, high: float) -> Kind:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:  # false for nan
            raise ValueError(f"must be a number from {low:g} to {high:g}, not {text!r}")
        return value

    return parse


def delays(text: str) -> tuple[float, ...]:
    items = text.split(",")
    if len(items) > _DELAYS_MAX:
        raise ValueError(f"must name at most {_DELAYS_MAX} delays, not {len(items)}")
    try:
        return tuple(decimal(0.001, 86_400)(item.strip()) for item in items)
    except ValueError as error:
        raise ValueError(f"must be a list such as 5,10,30, where each {error}") from error


def networks(text: str) -> tuple[Network, ...]:
    items = [item.strip() for item in text.split(",")]
    if len(items) > _NETWORKS_MAX:
        raise ValueError(f"must name at most {_NETWORKS_MAX} networks, not {len(items)}")
    try:
        return tuple(ip_network(item, strict=False) for item in items)
    except ValueError as error:
        raise ValueError(f"must be a list of addresses and networks such as 10.0.0.0/8,::1, not {text!r}") from error


def hosts(text: str) -> tuple[str, ...]:
    """Hosts are spelled as in a Content-Security-Policy, so they may contain nothing else."""
    items = [item.strip().lower() for item in text.split(",")]
    if len(items) > _HOSTS_MAX:
        raise ValueError(f"must name at most {_HOSTS_MAX} hosts, not {len(items)}")
    label = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
    if not all(re.fullmatch(rf"(?:\*\.)?{label}(?:\.{label})+(?::[0-9]{{1,5}})?", item) for item in items):
        raise ValueError(f"must be a list of hosts such as cdn.example.com,*.img.example.com, not {text!r}")
    return tuple(items)


def origins(text: str) -> tuple[str, ...]:
    """Origins are spelled as browsers do in `Origin`: in lower case, and without the usual port."""
    items = [item.strip().lower() for item in text.split(",")]
    if len(items) > _ORIGINS_MAX:
        raise ValueError(f"must name at most {_ORIGINS_MAX} origins, not {len(items)}")
    return tuple(dict.fromkeys(_origin(item) for item in items))


def _origin(text: str) -> str:
    found = re.fullmatch(r"(https?)://([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?", text)
    if found is None or not 0 < int(found[4] or 1) < 65_536:
        raise ValueError(
            "must be a list of origins such as https://shop.example.com,http://localhost:3000: scheme, host and port, "
            f"without a path, and each by its name, not {text!r}"
        )
    usual = _DEFAULT_PORTS[found[1]]
    port = int(found[4] or usual)
    return f"{found[1]}://{found[2]}" + ("" if port == usual else f":{port}")


def one_of(*words: str) -> Kind:
    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"must be {' or '.join(words)}, not {text!r}")
        return text.lower()

    return parse


def url(*families: str) -> Kind:
    def parse(text: str) -> str:
        scheme, separator, _ = text.partition("://")
        # `redis+cluster` and `postgresql+asyncpg` are kinds of redis and postgresql; wiring tells them apart.
        if not separator or scheme.partition("+")[0] not in families:
            # The text is not repeated: the misplaced part may be the password.
            raise ValueError(f"must begin with {' or '.join(f'{family}://' for family in families)}")
        return text

    return parse


def beacon_url(text: str) -> str:
    if text.count("{round}") != 1:
        raise ValueError("must have {round} in it, in the place of the number")
    return str(url("http", "https")(text))


def hmac_secret(text: str) -> Secret:
    size = len(text.encode(errors="surrogateescape"))
    if size < SECRET_BYTES_MIN:
        remedy = "`openssl rand -base64 48` makes one"
        raise ValueError(f"must have at least {SECRET_BYTES_MIN} bytes, not {size}: {remedy}")
    return _random(text, SECRET_BITS_MIN, "openssl rand -base64 48")


def named_secrets(text: str) -> tuple[tuple[str, Secret], ...]:
    """`kid=secret` with commas between them. A secret may have = in it, and no comma."""
    found: dict[str, Secret] = {}
    for part in text.split(","):
        name, separator, secret = part.strip().partition("=")
        # Nothing of the text is repeated: the misplaced part may be the secret.
        if not separator or not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
            raise ValueError("must be kid=secret,kid=secret, each kid of letters, digits and . _ -")
        if name in found:
            raise ValueError(f"names the key {name} twice")
        try:
            found[name] = hmac_secret(secret)
        except ValueError as error:
            raise ValueError(f"has a key, {name}, which {error}") from None
    if len(set(found.values())) < len(found):
        raise ValueError("has the same secret under two names")
    if len(found) > KEYS_MAX:
        raise ValueError(f"must have at most {KEYS_MAX} keys")
    return tuple(found.items())


def roles(text: str) -> tuple[tuple[str, str], ...]:
    """`role=value` with commas between them; a role may have several values."""
    found = []
    for part in text.split(","):
        role, separator, value = (piece.strip() for piece in part.partition("="))
        if not separator or role not in ROLES or not value:
            raise ValueError(f"must be a list such as admin=sre,operator=sales, with the roles {', '.join(ROLES)}")
        found.append((role, value))
    return tuple(found)


def admin_key(text: str) -> Secret:
    if len(text) < ADMIN_KEY_CHARS_MIN:
        remedy = "`openssl rand -hex 24` makes one"
        raise ValueError(f"must have at least {ADMIN_KEY_CHARS_MIN} characters, not {len(text)}: {remedy}")
    if not re.fullmatch(r"[A-Za-z0-9._~+/=-]+", text):
        raise ValueError("must be letters, digits and . _ ~ + / = - only, because it travels in a header")
    return _random(text, ADMIN_KEY_BITS_MIN, "openssl rand -hex 24")


def _random(text: str, bits_min: int, made_by: str) -> Secret:
    if text != text.strip():
        raise ValueError("must not begin or end with white space")
    if can_be_guessed(text, bits_min):
        raise ValueError(
            "can be guessed (words, repetitions, or characters in the order of the alphabet or a keyboard, perhaps "
            "written in another way): set it to "
            f"random text, as `{made_by}` makes it"
        )
    return Secret(text)


def provider(text: str) -> str:
    if not re.fullmatch(r"sandbox|callback|stripe|alipay|wechat|[A-Za-z_][\w.]*:[A-Za-z_]\w*", text):
        raise ValueError(
            "must be sandbox, callback, stripe, alipay, wechat or the name of a factory such as shop.payment:make, not "
            f"{text!r}"
        )
    return text


def public_key(text: str) -> str:
    """PEM text, or the path of a file with it."""
    if "-----BEGIN" not in text:
        try:
            text = Path(text).expanduser().read_text(encoding="ascii")
        except (OSError, ValueError, RuntimeError) as error:
            # The text is not repeated: it may be a key that lost its first line.
            raise ValueError("must be a public key in PEM form, or the path of a file that has one") from error
    # Files of environment variables cannot hold line breaks, so there the breaks are written as \n.
    text = text.replace("\\n", "\n").strip() + "\n"
    if "PRIVATE KEY" in text:
        raise ValueError("is a private key: give the public one, the other belongs to whoever makes the tokens")
    if not re.match(r"-----BEGIN (RSA )?PUBLIC KEY-----\n", text):
        raise ValueError("must be a public key in PEM form (-----BEGIN PUBLIC KEY-----)")
    return text


def service_secret(text: str) -> Secret:
    """A secret chosen by another service, taken as it is."""
    if not re.fullmatch(r"[!-~]+", text):
        raise ValueError("must be visible ASCII characters only")
    return Secret(text)


SECRET = (hmac_secret, named_secrets, admin_key, service_secret)
