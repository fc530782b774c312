"""What a plain claim says: its request, the buyer's token and the order, read in one go by the kernel.

A claim is plain if its request is (`plain_request.py`), it asks for up to ten units and nothing else, and its token is
signed with a secret, says only flat things, and spells its buyer as most shops do. Every other claim, and every claim
where there is no kernel, is read part by part, by code that knows more. `tests/native` has the same in Python.

Nothing is believed here: who signed the token, and whether it is still good, is for `buyer_tokens.py` to judge.
"""

from collections.abc import Callable
from typing import NamedTuple

from seckill.native.kernel_choice import KERNEL
from seckill.web.claims.plain_request import PLAIN, PLAIN_WITH_ORIGIN


class PlainClaim(NamedTuple):
    """What the kernel gives, as a plain tuple: it is taken apart at once."""

    sale_id: str
    quantity: int
    header: bytes  # of the token, as it is written
    signed: bytes
    signature: bytes
    user: str
    expires_s: int
    issued_s: int
    not_before_s: int
    token_says: str  # all of it, as JSON
    key: bytes | None  # the headers Idempotency-Key, X-Request-Id and Origin
    request_id: bytes | None
    origin: bytes | None


def _none_is_plain(_: bytes) -> None:
    return None


def plain_claim_reader(
    issuer: str | None, audience: str | None, *, with_origin: bool
) -> Callable[[bytes], PlainClaim | None]:
    """Tokens have to be meant for this audience, and from this issuer if there is one."""
    if KERNEL is None or not f"{issuer}{audience}".isascii():  # no plain token names any other than in ASCII
        return _none_is_plain
    read: Callable[[bytes], PlainClaim | None] = KERNEL.PlainClaimReader(
        PLAIN_WITH_ORIGIN if with_origin else PLAIN, issuer, audience
    ).read
    return read
