"""The kinds of values for payment providers' keys.

A key may be in the variable itself or in a file that the variable names. While a key is being changed, both the old and
the new one may be there. As with all kinds, the text of a key is never repeated.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

from seckill.settings.redaction import Secret

KEYS_MAX = 4
FILE_BYTES_MAX = 65_536
_PEM = re.compile(r"-----BEGIN ([A-Z ]+)-----\n.*?\n-----END \1-----\n?", re.DOTALL)


def _text(given: str, is_meant: Callable[[str], bool], what: str) -> str:
    """Returns the text itself, or the content of the file that it names."""
    # Files of environment variables cannot hold line breaks, so there the breaks are written as \n.
    text = given.replace("\\n", "\n").strip()
    if is_meant(text):
        return text
    try:
        path = Path(text).expanduser()
        if path.stat().st_size > FILE_BYTES_MAX:
            raise ValueError("too long")
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError, RuntimeError) as error:
        raise ValueError(f"must be {what}, or the path of a file that has it") from error


def _items(text: str) -> list[str]:
    items = [item for item in re.split(r"[,\s]+", text) if item]
    if not 1 <= len(items) <= KEYS_MAX:
        raise ValueError(f"must be 1 to {KEYS_MAX}, separated by commas: the new one and the old one")
    return items


def stripe_key(given: str) -> Secret:
    what = "a secret or restricted key of Stripe's (sk_live_…, rk_live_…, or sk_test_… to try things out)"
    text = _text(given, lambda text: text.startswith(("sk_", "rk_", "pk_")), what)
    if text.startswith("pk_"):
        raise ValueError("is a publishable key, with which nothing can be refunded: give the secret one (sk_… or rk_…)")
    if not re.fullmatch(r"[sr]k_(live|test)_[A-Za-z0-9]{10,247}", text):
        raise ValueError(f"must be {what}")
    return Secret(text)


def stripe_webhook_secrets(given: str) -> tuple[Secret, ...]:
    what = "the signing secret of the webhook (whsec_…), or several with commas between them"
    items = _items(_text(given, lambda text: text.startswith("whsec_"), what))
    if not all(re.fullmatch(r"whsec_[A-Za-z0-9+/=_-]{24,250}", item) for item in items):
        raise ValueError(f"must be {what}")
    return tuple(map(Secret, items))


def wechat_api_keys(given: str) -> tuple[Secret, ...]:
    what = "the APIv3 key, which has 32 letters and digits, or several with commas between them"
    items = _items(_text(given, lambda text: "/" not in text and "." not in text, what))
    if not all(re.fullmatch(r"[A-Za-z0-9]{32}", item) and len(set(item)) >= 8 for item in items):
        raise ValueError(f"must be {what}, as the merchant platform makes them")
    return tuple(map(Secret, items))


def rsa_private_key(given: str) -> Secret:
    what = "a private key in PEM form (-----BEGIN PRIVATE KEY-----)"
    text = _text(given, _is_pem, what) + "\n"
    _rsa().private_key(text)
    return Secret(text)


def rsa_public_keys(given: str) -> tuple[str, ...]:
    """Public keys and certificates, one after the other."""
    what = "a public key or certificate in PEM form (-----BEGIN PUBLIC KEY-----)"
    text = _text(given, _is_pem, what) + "\n"
    if "PRIVATE KEY" in text:
        raise ValueError("has a private key in it: give the provider's public one")
    found = tuple(match[0].strip() + "\n" for match in _PEM.finditer(text))
    if not 1 <= len(found) <= KEYS_MAX:
        raise ValueError(f"must be {what}, or up to {KEYS_MAX} of them one after the other")
    for each in found:
        _rsa().public_key(each)
    return found


def wechat_public_keys(given: str) -> tuple[str, ...]:
    """Each key comes with the name by which WeChat Pay says which one it has used: ID=PATH, or the path of a
    certificate, which contains its serial number."""
    found = []
    for item in given.split(","):
        name, separator, rest = item.strip().partition("=")
        if separator and re.fullmatch(r"PUB_KEY_ID_[0-9]{1,40}", name):
            found += [f"{name}={pem}" for pem in rsa_public_keys(rest)]
        else:
            found += [f"{_serial(pem)}={pem}" for pem in rsa_public_keys(item.strip())]
    if not 1 <= len(found) <= KEYS_MAX:
        raise ValueError(f"must be 1 to {KEYS_MAX} keys")
    return tuple(found)


def _serial(pem: str) -> str:
    if "CERTIFICATE" not in pem:
        raise ValueError(
            "must say which key it is: PUB_KEY_ID_…=PATH for WeChat Pay's public key, or the path of its platform "
            "certificate"
        )
    return str(_rsa().serial_of(pem))


def account(given: str) -> str:
    """The provider's name for us, which is not a secret."""
    if not re.fullmatch(r"[A-Za-z0-9_]{4,64}", given):
        raise ValueError("must be 4 to 64 letters and digits, as the provider shows it")
    return given


def https_url(given: str) -> str:
    """Loopback addresses may do without TLS, for trying things out."""
    local = re.match(r"http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?(/|$)", given)
    if not local and not re.match(r"https://[^\s/?#@]+(/|$)", given):
        raise ValueError("must begin with https:// and name a host")
    if "?" in given or "#" in given:
        raise ValueError("must have no ? and no #")
    return given


def _is_pem(text: str) -> bool:
    return "-----BEGIN" in text


def _rsa() -> "ModuleType":
    from seckill.settings import rsa_keys  # noqa: PLC0415 (slow to load, and most shops have none)

    return rsa_keys


SECRET = (stripe_key, stripe_webhook_secrets, wechat_api_keys, rsa_private_key)

# The settings that a provider needs, and what they are for.
NEEDS: Mapping[str, Mapping[str, str]] = {
    "stripe": {
        "public_url": "buyers come back there from paying",
        "stripe_key": "sessions to pay on and refunds are asked for with it",
        "stripe_webhook_secrets": "notices of payments are known by it",
    },
    "alipay": {
        "public_url": "Alipay sends buyers and notices there",
        "alipay_app_id": "Alipay knows you by it",
        "alipay_private_key": "requests to Alipay are signed with it",
        "alipay_public_keys": "notices of payments are known by it",
    },
    "wechat": {
        "public_url": "WeChat Pay sends notices there",
        "wechat_app_id": "WeChat Pay knows you by it",
        "wechat_merchant_id": "WeChat Pay knows you by it",
        "wechat_private_key": "requests to WeChat Pay are signed with it",
        "wechat_serial": "WeChat Pay knows your key by it",
        "wechat_api_keys": "notices of payments are encrypted with it",
        "wechat_public_keys": "notices of payments are known by it",
    },
}
