"""Pictures of goods that operators upload: what is accepted, and how it is kept. Pure."""

import re
from dataclasses import dataclass

BYTES_MAX = 10 * 1024 * 1024
# The greatest width times height of an upload, checked before anything is unpacked.
PIXELS_MAX = 40_000_000
# The longer side of a kept picture: twice what the largest place on a page needs.
SIDE_MAX = 1600
MEDIA_TYPE = "image/webp"
# How long a picture that no sale shows is kept after it was uploaded or last given to a sale.
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
        """Returns its path, whose content never changes."""
        return f"/images/{self.digest}.webp"


def digest_in(address: str) -> str | None:
    """None: it is not the address of an uploaded picture."""
    found = _ADDRESS.fullmatch(address)
    return None if found is None else found[1]


class BadPicture(Exception):
    """The reason is meant for the operator who uploads it."""
