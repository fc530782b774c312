"""Pictures of goods that operators upload: what is taken, and what becomes of it. Pure."""

import re
from dataclasses import dataclass

BYTES_MAX = 10 * 1024 * 1024
# Of what is uploaded, width times height: looked at before anything is unpacked.
PIXELS_MAX = 40_000_000
# Of what is kept, the longer side: enough for the largest place that a page has for it, twice over.
SIDE_MAX = 1600
MEDIA_TYPE = "image/webp"
# One that no sale shows is kept for so long after it was uploaded or last given to a sale.
UNUSED_KEPT_DAYS = 7

_ADDRESS = re.compile(r"/images/([0-9a-f]{64})\.webp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    digest: str  # of its content, in hexadecimal digits
    content: bytes
    width: int
    height: int

    @property
    def address(self) -> str:
        """Its path. What it leads to never changes."""
        return f"/images/{self.digest}.webp"


def digest_in(address: str) -> str | None:
    """None: it is not the address of an uploaded picture."""
    found = _ADDRESS.fullmatch(address)
    return None if found is None else found[1]


class BadPicture(Exception):
    """The reason is for whoever uploads it."""
