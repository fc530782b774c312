"""Bodies that may be larger than all others: what operators upload.

Every other body is small and is waited for as a whole. These are read piece by piece, by a handler that has looked at
the operator's key before: who does not have it is answered at once, and whatever they send on is dropped with the
connection (`guarded_protocol.py`). How much may come is said here for each address, and the client must keep sending.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from seckill.domain import buyer_id, picture
from seckill.domain.audience_list import BUYERS_MAX
from seckill.domain.voucher import CODE_BYTES_MAX, CODES_MAX
from seckill.web.problems import HttpProblem

MIB = 1024 * 1024
_PREFIX = b"/v1/admin/"


@dataclass(frozen=True, slots=True)
class Upload:
    address: re.Pattern[bytes]  # what comes after the prefix
    bytes_max: int
    method: bytes = b"POST"


# As many codes as there may be, as long as they may be, each with quotation marks and the end of its line.
VOUCHERS = Upload(re.compile(rb"sales/[0-9A-Za-z]{1,32}/vouchers"), CODES_MAX * (CODE_BYTES_MAX + 4))
IMAGES = Upload(re.compile(rb"images"), picture.BYTES_MAX)
# As many buyers as there may be, with ids that are mostly shorter than they may be.
AUDIENCE = Upload(re.compile(rb"sales/[0-9A-Za-z]{1,32}/audience"), BUYERS_MAX * (buyer_id.BYTES_MAX + 4), b"PUT")
_ALL = (VOUCHERS, IMAGES, AUDIENCE)


def upload_to(method: bytes, target: bytes) -> Upload | None:
    """What a request with this first line may upload; None: nothing."""
    if method == b"GET" or not target.startswith(_PREFIX):
        return None
    address = target[len(_PREFIX) :].partition(b"?")[0]
    return next((each for each in _ALL if each.method == method and each.address.fullmatch(address)), None)


async def pieces(receive: Callable[[], Awaitable[Any]], upload: Upload) -> AsyncIterator[bytes]:
    """Of the body, as they come. What is not asked for waits at the sender."""
    arrived = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpProblem(400, "bad_request", "The request broke off.")
        piece = message.get("body", b"")
        more = message.get("more_body", False)
        arrived += len(piece)
        if arrived > upload.bytes_max:
            raise HttpProblem(413, "too_large", f"This may have {upload.bytes_max / MIB:.0f} MiB at most.")
        if piece:
            yield piece


async def take_rest(rest: AsyncIterator[bytes]) -> None:
    """Of what was refused before all of it had come: many clients look for the answer only when they have sent all."""
    async for _ in rest:
        pass
