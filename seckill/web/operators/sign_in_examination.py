"""Examines whether operators can sign in with their provider: its metadata, its keys, and the way there and back."""

import asyncio
import json
import secrets
import urllib.error
from urllib.parse import parse_qs, urlsplit

from seckill.operations.doctor.examination import Health
from seckill.settings import Settings
from seckill.web.buyers.issuer_calls import FAILURES, ask
from seckill.web.operators.sign_in_provider import ProviderAway, SignInProvider

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


async def examine_sign_in(settings: Settings) -> Health:
    if not settings.oidc_url:
        return Health("with keys only; SECKILL_OIDC_URL lets operators use their accounts")
    provider = SignInProvider(settings)
    try:
        keys = await provider.keys_published()
        question = await provider.question(*(secrets.token_urlsafe(32) for _ in range(3)))
    except ProviderAway as error:
        return Health("", mend=[str(error)])
    refusal, way_back = await asyncio.gather(
        asyncio.to_thread(_refusal, question, provider.return_url), asyncio.to_thread(_way_back, settings)
    )
    many = f"{keys} key{'' if keys == 1 else 's'}"
    says = f"with {provider.name}, which shows {many}; people come back to {provider.return_url}"
    return Health(says, mend=[] if refusal is None else [refusal], advice=way_back)


def _refusal(question: str, return_url: str) -> str | None:
    """Returns why the provider would refuse a browser. A provider that knows our client shows a page or redirects to
    one; asking it signs no one in."""
    try:
        ask(question)
    except urllib.error.HTTPError as error:
        with error:
            going = str(error.headers.get("Location") or "")
            code = parse_qs(urlsplit(going).query).get("error", [""])[0] if going.startswith(return_url) else ""
            if error.code < 400 and not code:
                return None
            why = code or f"HTTP {error.code}"
        return (
            f"The provider refuses to begin ({why}): register the client SECKILL_OIDC_CLIENT_ID there for the "
            f"authorization code flow, with the return address {return_url}."
        )
    except ValueError:
        return None  # the page is larger than we read
    except FAILURES as error:
        return f"The provider's page to sign in on does not answer ({error}): browsers will not reach it, either."
    return None


def _way_back(settings: Settings) -> list[str]:
    """Returns advice about the address to which browsers come back. Browsers may reach it even if this machine
    cannot."""
    host, theirs = urlsplit(settings.public_url).hostname, urlsplit(settings.oidc_url).hostname
    if host in _LOOPBACK and theirs not in _LOOPBACK:
        return [f"SECKILL_PUBLIC_URL is {settings.public_url}: only browsers on this machine come back to it."]
    try:
        name = json.loads(ask(f"{settings.public_url.rstrip('/')}/version"))["name"]
    except (*FAILURES, LookupError, TypeError) as error:
        return [
            f"SECKILL_PUBLIC_URL, {settings.public_url}, cannot be reached from here ({error}): look whether browsers "
            "get to the console there."
        ]
    return [] if name == "seckill" else [f"{settings.public_url} answers, but not as seckill does."]
