"""Where uploaded pictures are kept, so that every node has them, and what makes them fit to be shown."""

from collections.abc import Sequence
from typing import Protocol

from seckill.domain.picture import Picture


class PictureLedger(Protocol):
    async def keep_picture(self, picture: Picture) -> None:
        """Harmless to repeat: the same content is the same picture."""

    async def picture(self, digest: str) -> Picture | None: ...

    async def use_pictures(self, digests: Sequence[str]) -> set[str]:
        """Those of them that are there, and are not forgotten before they have been unused for long once more."""

    async def forget_pictures(self, unused_ms: int, count: int) -> int:
        """Up to `count` of those that no sale shows and that were neither uploaded nor given to a sale for so long.
        Returns how many."""


class PictureMaker(Protocol):
    def __call__(self, content: bytes) -> Picture:
        """Whatever was uploaded, checked and made anew, without anything but what is to be seen. Takes a while and runs
        in a thread. Raises BadPicture, and StartError where what it takes is not installed."""
