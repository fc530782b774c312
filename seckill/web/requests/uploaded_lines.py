"""Reads an operator's upload line by line, keeping only the current line."""

import csv
from collections.abc import AsyncIterator

_BOM = b"\xef\xbb\xbf"


class BadLine(Exception):
    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line} {why}")
        self.line = line
        self.why = why


async def numbered_lines(
    pieces: AsyncIterator[bytes], line_bytes_max: int, too_long: str
) -> AsyncIterator[tuple[int, str]]:
    """Yields lines, counted from 1 and without their ends. Raises BadLine."""
    number = 0
    async for raw in _lines(pieces, line_bytes_max):
        number += 1
        if len(raw) > line_bytes_max:
            raise BadLine(number, too_long)
        line = raw.removeprefix(_BOM) if number == 1 else raw
        try:
            yield number, line.removesuffix(b"\r").decode()
        except UnicodeDecodeError:
            raise BadLine(number, "is not UTF-8") from None


async def _lines(pieces: AsyncIterator[bytes], line_bytes_max: int) -> AsyncIterator[bytes]:
    begun = b""
    async for piece in pieces:
        *lines, begun = (begun + piece).split(b"\n")
        for line in lines:
            yield line
        if len(begun) > line_bytes_max:
            yield begun  # it will be refused for its length before more of it is kept
            begun = b""
    if begun:
        yield begun


def only_field(number: int, text: str, what: str) -> str:
    """Returns the only field of a CSV line. Raises BadLine."""
    if '"' not in text and "," not in text:
        return text
    try:
        fields = next(csv.reader([text], strict=True))
    except csv.Error:
        raise BadLine(number, "has quotation marks that do not belong together") from None
    if len(fields) != 1:
        raise BadLine(number, f"has {len(fields)} columns: only {what} may be there")
    return fields[0]
