"""Reads buyers from CSV or JSON, one in each line."""

from collections.abc import AsyncIterator, Callable

import msgspec

from seckill.domain.audience_list import BUYERS_MAX
from seckill.domain.buyer_id import BYTES_MAX, BadBuyerId, buyer_id
from seckill.web.requests.uploaded_lines import BadLine, numbered_lines, only_field

# How many buyers are processed together: a few hundredths of a second of work, after which other tasks get a turn.
PORTION = 5000
HEADING = "buyer"  # the column's name, as the first line of CSV
# Every character may be escaped, and there may be a field name and quotation marks.
LINE_BYTES_MAX = 6 * BYTES_MAX + 64


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    buyer: str


_line = msgspec.json.Decoder(_Line)

Read = Callable[[int, str], str]


def from_csv(number: int, text: str) -> str:
    return only_field(number, text, "the buyer")


def from_json(number: int, text: str) -> str:
    try:
        return _line.decode(text).buyer
    except msgspec.MsgspecError:
        raise BadLine(number, 'is not like {"buyer": "…"}') from None


READERS: dict[str, Read] = {
    "text/csv": from_csv,
    "application/jsonl": from_json,
    "application/x-ndjson": from_json,
    "application/json-lines": from_json,
}


async def portions(pieces: AsyncIterator[bytes], read: Read) -> AsyncIterator[list[str]]:
    """Yields buyers' ids in portions, spelled as in tokens. Raises BadLine."""
    found = 0
    portion: list[str] = []
    async for number, text in numbered_lines(pieces, LINE_BYTES_MAX, "is too long for a buyer's id"):
        name = read(number, text)
        if number == 1 and name == HEADING and read is from_csv:
            continue
        try:
            portion.append(buyer_id(name))
        except BadBuyerId as error:
            raise BadLine(number, f"has a buyer's id that {error}") from None
        found += 1
        if found > BUYERS_MAX:
            raise BadLine(number, f"is more than the {BUYERS_MAX} buyers that a list may have")
        if len(portion) == PORTION:
            yield portion
            portion = []
    if portion:
        yield portion
