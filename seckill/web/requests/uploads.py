"""The uploads of operators, whose bodies may be larger than all others.

Every other body is small and read as a whole. These are read piece by piece, by a handler that has checked the
operator's key first. A client without a key is answered at once, and what it goes on sending is dropped with the
connection (`guarded_protocol.py`). The maximum size is given here for each address, and the client must keep sending.
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


# Room for the maximum number of codes of maximum length, each with quotation marks and the end of its line.
VOUCHERS = Upload(re.compile(rb"sales/[0-9A-Za-z]{1,32}/vouchers"), CODES_MAX * (CODE_BYTES_MAX + 4))
IMAGES = Upload(re.compile(rb"images"), picture.BYTES_MAX)
# Room for the maximum number of buyers, whose ids are usually shorter than the maximum.
AUDIENCE = Upload(re.compile(rb"sales/[0-9A-Za-z]{1,32}/audience"), BUYERS_MAX * (buyer_id.BYTES_MAX + 4), b"PUT")
_ALL = (VOUCHERS, IMAGES, AUDIENCE)


def upload_to(method: bytes, target: bytes) -> Upload | None:
    """Returns what a request with this first line may upload, or None for nothing."""
    if method == b"GET" or not target.startswith(_PREFIX):
        return None
    address = target[len(_PREFIX) :].partition(b"?")[0]
    return next((each for each in _ALL if each.method == method and each.address.fullmatch(address)), None)


async def pieces(receive: Callable[[], Awaitable[Any]], upload: Upload) -> AsyncIterator[bytes]:
    """Yields the pieces of the body as they come. Pieces that are not asked for wait at the sender."""
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
    """Reads the rest of an upload that was refused early: many clients only look for the answer when they have sent
    everything."""
    async for _ in rest:
        pass
