"""Where uploaded pictures are kept, so that every node has them, and what makes them fit to be shown."""

from collections.abc import Sequence
from typing import Protocol

from seckill.domain.picture import Picture


class PictureLedger(Protocol):
    async def keep_picture(self, picture: Picture) -> None:
        """Harmless to repeat: the same content is the same picture."""

    async def picture(self, digest: str) -> Picture | None: ...

    async def use_pictures(self, digests: Sequence[str]) -> set[str]:
        """Returns those that exist, and starts their time of being unused anew."""

    async def forget_pictures(self, unused_ms: int, count: int) -> int:
        """Deletes up to `count` pictures that no sale shows and that were neither uploaded nor given to a sale for that
        long. Returns how many."""


class PictureMaker(Protocol):
    def __call__(self, content: bytes) -> Picture:
        """Checks an upload and re-encodes it, so that only the visible picture is left. Takes a while and runs in a
        thread. Raises BadPicture, and StartError if the library for it is not installed."""
