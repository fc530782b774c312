"""Does a payment provider keep what `PaymentProvider` promises?"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from seckill.domain.money import DECIMALS
from seckill.domain.order_number import OrderNumber
from seckill.payment import Capture, NotGenuine, Notice, PaymentProvider, ProviderUnavailable, Refund

NAME_LENGTH_MAX = 32
REF_LENGTH_MAX = 128
NOW_S = 1_800_000_000.0
_FORGED: Mapping[str, bytes] = {
    "an empty callback": b"",
    "a callback that is not text": b"\xff\x00\xfe",
    "an unsigned callback": b'{"payment_id": "p1", "order_id": "ORDER", "amount_cents": 9900, "currency": "CNY"}',
}


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
) -> None:
    """Raises Breaches with one sentence for everything that is wrong.

    `callback`: headers and body of a genuine one, as your payment side sends it at the Unix time `now_s`. With it, what
    `read` makes of it is checked, and that no byte of it can be changed. `refunds`: how many refunds your payment side
    has made so far. With it, `refund` is called three times, and must make two.
    """
    found = [*_shape(provider)]
    if not found:
        found += _forged(provider, now_s)
        if callback is not None:
            found += _genuine(provider, *callback, now_s)
        if refunds is not None:
            found += await _refunds(provider, refunds)
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
    headers = {name.lower(): value for name, value in headers.items()}
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


async def _refunds(provider: PaymentProvider, refunds: Callable[[], int]) -> list[str]:
    found = []
    before = refunds()
    for refund_id in (1, 1, 2):
        try:
            done: object = await provider.refund(_refund(provider, refund_id), "ORDER")
        except ProviderUnavailable as error:
            return [f"`refund` cannot be checked while the payment side is away ({error})."]
        except Exception as error:
            return [f"`refund` may raise ProviderUnavailable only, not {error!r}."]
        if not isinstance(done, bool):
            found.append(f"`refund` must return True or False, not {done!r}.")
    if (made := refunds() - before) != 2:
        found.append(f"`refund` must make one refund for each `refund.id`: asked for 1, 1 and 2, it made {made}.")
    return found


def _refund(provider: PaymentProvider, refund_id: int) -> Refund:
    return Refund(
        id=refund_id,
        capture=Capture(provider=provider.name, ref=f"check-{refund_id}", amount_cents=9900, currency="CNY"),
        number=OrderNumber.from_int(refund_id),
        reason="already_paid",
        attempts=1,
        created_ms=int(NOW_S * 1000),
        done_ms=None,
    )


def _read(provider: PaymentProvider, headers: Mapping[str, str], body: bytes, now_s: float) -> object:
    """What it says or raises."""
    try:
        return provider.read(headers, body, now_s)
    except Exception as error:
        return error
