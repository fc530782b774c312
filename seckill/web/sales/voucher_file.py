"""Reads codes from CSV, one in each line."""

from collections.abc import AsyncIterator

from seckill.domain.voucher import CODE_BYTES_MAX, CODES_MAX, fault_in
from seckill.web.requests.uploaded_lines import BadLine, numbered_lines, only_field

# How many codes are written together: a few hundredths of a second of work, after which other tasks get a turn.
PORTION = 5000
HEADING = "code"  # the column's name, as the first line
# With quotation marks, each of which may be doubled, and the end of the line.
_LINE_BYTES_MAX = 2 * CODE_BYTES_MAX + 4


async def portions(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[tuple[int, str]]]:
    """Yields codes with the numbers of their lines, counted from 1. Raises BadLine."""
    found = 0
    portion: list[tuple[int, str]] = []
    too_long = f"has a code of more than {CODE_BYTES_MAX} bytes"
    async for number, text in numbered_lines(pieces, _LINE_BYTES_MAX, too_long):
        code = only_field(number, text, "the code")
        if (why := fault_in(code)) is not None:
            raise BadLine(number, why)
        if number == 1 and code == HEADING:
            continue
        found += 1
        if found > CODES_MAX:
            raise BadLine(
                number, f"is more than the {CODES_MAX} codes that an upload may have: upload the rest separately"
            )
        portion.append((number, code))
        if len(portion) == PORTION:
            yield portion
            portion = []
    if portion:
        yield portion
