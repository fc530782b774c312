"""Checks whether a payment provider keeps the promises of `PaymentProvider`."""

import asyncio
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from seckill.domain.money import DECIMALS
from seckill.domain.order_number import OrderNumber
from seckill.payment import Capture, NotGenuine, Notice, PaymentProvider, ProviderUnavailable, Refund, RefundRefused
from seckill.testing.provider_in_engine import in_engine

NAME_LENGTH_MAX = 32
REF_LENGTH_MAX = 128
NOW_S = 1_800_000_000.0
# A keeper makes no other refunds while it waits for one.
REFUND_WITHIN_S = 25.0
_FORGED: Mapping[str, bytes] = {
    "an empty callback": b"",
    "a callback that is not text": b"\xff\x00\xfe",
    "an unsigned callback": b'{"payment_id": "p1", "order_id": "ORDER", "amount_cents": 9900, "currency": "CNY"}',
}


class PaymentSide(Protocol):
    """The other side of the provider, or its stand-in in a test."""

    def notify(self, notice: Notice, now_s: float) -> tuple[Mapping[str, str], bytes] | None:
        """Returns headers and body of a genuine callback that says this, sent at that Unix time, or None if the payment
        side cannot say it, for example because it knows only one currency."""

    def refunds(self) -> int:
        """Returns how many refunds it has made so far."""

    def trouble(self, kind: str) -> None:
        """Makes the payment side `away` (no answer, or 500), `slow` (answers come too late), `mute` (requests are
        carried out, but the answers are lost) or `refusing` (final refusals) from now on. Empty: nothing is wrong."""


class Breaches(AssertionError):
    def __init__(self, sentences: list[str]) -> None:
        self.sentences = sentences
        super().__init__("\n".join(sentences))


async def check_provider(
    provider: PaymentProvider,
    *,
    callback: tuple[Mapping[str, str], bytes] | None = None,
    now_s: float = NOW_S,
    refunds: Callable[[], int] | None = None,
    side: PaymentSide | None = None,
) -> None:
    """Raises Breaches with one sentence for everything that is wrong.

    `callback`: headers and body of a genuine one, as your payment side sends it at the Unix time `now_s`. With it, what
    `read` makes of it is checked, and that no byte of it can be changed. `refunds`: how many refunds your payment side
    has made so far. With it, `refund` is called three times, and must make two.

    `side`: your payment side itself. With it, all of this is checked, and what becomes of its callbacks and of refunds
    in an engine in memory, also while it is away, slow, or says no.
    """
    found = [*_shape(provider)]
    if not found:
        found += _forged(provider, now_s)
        if callback is not None:
            found += _genuine(provider, *callback, now_s)
        if refunds is not None:
            found += await _refunds(provider, refunds)
        if side is not None:
            found += _callbacks(provider, side, now_s)
            found += await _refunds(provider, side.refunds)
            found += await _troubles(provider, side)
            found += await in_engine(provider, side)
    if found:
        raise Breaches(found)


def _shape(provider: Any) -> list[str]:
    found = []
    name = getattr(provider, "name", None)
    if not isinstance(name, str) or not 1 <= len(name) <= NAME_LENGTH_MAX:
        found.append(f"`name` must be a text of 1 to {NAME_LENGTH_MAX} characters, not {name!r}.")
    if not isinstance(sandbox := getattr(provider, "sandbox", None), bool):
        found.append(f"`sandbox` must be True or False, not {sandbox!r}.")
    if not callable(getattr(provider, "read", None)) or inspect.iscoroutinefunction(provider.read):
        found.append("`read` must be a plain method, not a coroutine.")
    if not inspect.iscoroutinefunction(getattr(provider, "refund", None)):
        found.append("`refund` must be `async def`.")
    return found


def _forged(provider: PaymentProvider, now_s: float) -> list[str]:
    found = []
    for what, body in _FORGED.items():
        said = _read(provider, {}, body, now_s)
        if isinstance(said, Notice):
            found.append(f"`read` takes {what} for genuine: anybody could pay with it.")
        elif not isinstance(said, NotGenuine | ProviderUnavailable):
            found.append(f"`read` must raise NotGenuine for {what}, not {said!r}.")
    return found


def _genuine(provider: PaymentProvider, headers: Mapping[str, str], body: bytes, now_s: float) -> list[str]:
    headers = _lower(headers)
    notice = _read(provider, headers, body, now_s)
    if not isinstance(notice, Notice):
        return [f"`read` must understand the genuine callback, and raises {notice!r}."]
    found = _facts(notice)
    if _read(provider, headers, body, now_s) != notice:
        found.append("`read` must say the same of the same callback however often it comes.")
    changed = [_read(provider, headers, _with_another(body, place), now_s) for place in range(len(body))]
    for place, said in enumerate(changed):
        if isinstance(said, Notice):
            found.append(f"`read` takes the callback for genuine although byte {place} of its body was changed.")
            break
    else:
        wrong = [said for said in changed if not isinstance(said, NotGenuine | ProviderUnavailable)]
        if wrong:
            found.append(f"`read` must raise NotGenuine when the body was changed, not {wrong[0]!r}.")
    return found


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _with_another(body: bytes, place: int) -> bytes:
    return body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]


def _facts(notice: Notice) -> list[str]:
    found = []
    if not isinstance(notice.ref, str) or not re.fullmatch(rf"[!-~]{{1,{REF_LENGTH_MAX}}}", notice.ref):
        found.append(f"`ref` must be 1 to {REF_LENGTH_MAX} printable ASCII characters, not {notice.ref!r}.")
    elif notice.ref.startswith("*"):
        found.append("`ref` must not begin with *, which is for payments in the sandbox.")
    if not isinstance(notice.order_id, str) or not notice.order_id:
        found.append(f"`order_id` must be the order's id as buyers see it, not {notice.order_id!r}.")
    if not isinstance(notice.amount_cents, int) or isinstance(notice.amount_cents, bool) or notice.amount_cents < 1:
        found.append(f"`amount_cents` must be a whole number above 0, not {notice.amount_cents!r}.")
    if notice.currency not in DECIMALS:
        found.append(f"`currency` must be a code of ISO 4217, not {notice.currency!r}.")
    return found


_NOTICES = [
    Notice(ref="check-1", order_id="0123456789ABC", amount_cents=1, currency="CNY"),
    Notice(ref="check-2", order_id="ZZZZZZZZZZZZZ", amount_cents=9_900, currency="CNY"),
    Notice(ref="check-3", order_id="0123456789ABC", amount_cents=29, currency="CNY"),  # as a float it would be 28.99…
    Notice(ref="check-4", order_id="0123456789ABC", amount_cents=99_999_999, currency="CNY"),
]


def _callbacks(provider: PaymentProvider, side: PaymentSide, now_s: float) -> list[str]:
    found: list[str] = []
    for notice in _NOTICES:
        if (callback := side.notify(notice, now_s)) is None:
            continue
        headers, body = callback
        said = _read(provider, _lower(headers), body, now_s)
        if said != notice:
            found.append(f"`read` must say {notice} of the callback that says so, not {said!r}.")
    if not found and callback is not None:
        found += _genuine(provider, *callback, now_s)
        found += _changed_headers(provider, *callback, now_s)
    return found


def _changed_headers(provider: PaymentProvider, headers: Mapping[str, str], body: bytes, now_s: float) -> list[str]:
    """Changes headers. One may matter or not, but a changed header that matters must not be accepted as meaning
    something else."""
    genuine = _read(provider, _lower(headers), body, now_s)
    for name in headers:
        without = {other: value for other, value in headers.items() if other != name}
        changed = {**headers, name: f"x{headers[name]}"}
        for what, given in (("left out", without), ("changed", changed)):
            said = _read(provider, _lower(given), body, now_s)
            if said != genuine and not isinstance(said, NotGenuine):
                return [f"`read` must raise NotGenuine when the header {name} was {what}, not {said!r}."]
    return []


async def _troubles(provider: PaymentProvider, side: PaymentSide) -> list[str]:
    """Checks that a refund is made once in the end, whatever happens in between."""
    found: list[str] = []
    for refund_id, (kind, wanted) in enumerate(
        {
            "away": ProviderUnavailable,
            "slow": ProviderUnavailable,
            "mute": ProviderUnavailable,
            "refusing": RefundRefused,
        }.items(),
        start=11,
    ):
        before = side.refunds()
        side.trouble(kind)
        try:
            async with asyncio.timeout(REFUND_WITHIN_S):
                said: object = await _asked(provider, _refund(provider, refund_id))
        except TimeoutError:
            said = f"nothing within {REFUND_WITHIN_S:g} s"
        finally:
            side.trouble("")
        if not isinstance(said, wanted):
            found.append(f"`refund` must raise {wanted.__name__} while the payment side is {kind}, not {said!r}.")
        refused = str(said) if isinstance(said, RefundRefused) else None
        said = await _asked(provider, replace(_refund(provider, refund_id), attempts=2, refused=refused))
        made = side.refunds() - before
        if said is not True or made != 1:
            found.append(
                f"`refund` must make the refund once after the payment side was {kind}: asked again it said {said!r}, "
                f"and made {made}."
            )
    return found


async def _asked(provider: PaymentProvider, refund: Refund) -> object:
    """Returns what the provider says or raises."""
    try:
        return await provider.refund(refund, "0123456789ABC")
    except Exception as error:
        return error


async def _refunds(provider: PaymentProvider, refunds: Callable[[], int]) -> list[str]:
    found = []
    before = refunds()
    for refund_id in (1, 1, 2):
        try:
            done: object = await provider.refund(_refund(provider, refund_id), "0123456789ABC")
        except ProviderUnavailable as error:
            return [f"`refund` cannot be checked while the payment side is away ({error})."]
        except RefundRefused as error:
            return [f"`refund` must make refunds of 40.01 and 40.02 CNY of a payment of 99.00, but refuses: {error}."]
        except Exception as error:
            return [f"`refund` may raise ProviderUnavailable or RefundRefused only, not {error!r}."]
        if not isinstance(done, bool):
            found.append(f"`refund` must return True or False, not {done!r}.")
    if (made := refunds() - before) != 2:
        found.append(f"`refund` must make one refund for each `refund.id`: asked for 1, 1 and 2, it made {made}.")
    return found


def _refund(provider: PaymentProvider, refund_id: int) -> Refund:
    """Returns a refund; all of them are parts of one payment."""
    return Refund(
        id=refund_id,
        amount_cents=4000 + refund_id,
        capture=Capture(provider=provider.name, ref="check", amount_cents=9900, currency="CNY"),
        number=OrderNumber.from_int(refund_id),
        reason="already_paid",
        attempts=1,
        created_ms=int(NOW_S * 1000),
        done_ms=None,
    )


def _read(provider: PaymentProvider, headers: Mapping[str, str], body: bytes, now_s: float) -> object:
    """Returns what the provider says or raises."""
    try:
        return provider.read(headers, body, now_s)
    except Exception as error:
        return error
