"""Pictures of goods: uploaded once, shown by every node, and deleted when no sale shows them."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from seckill.domain.picture import UNUSED_KEPT_DAYS, Picture
from seckill.engine.shared_look import SharedAnswers
from seckill.ports.pictures import PictureLedger, PictureMaker

DAY_MS = 86_400_000
FORGOTTEN_AT_ONCE = 100
# A node keeps the pictures that were asked for last in memory, up to this size. Caches in front of it ask once a year.
KEPT_BYTES = 32 * 1024 * 1024


class PictureDesk:
    def __init__(self, ledger: PictureLedger, make: PictureMaker) -> None:
        self._ledger = ledger
        self._make = make
        # One at a time: an unpacked picture takes a hundred times its size on the way here.
        self._making = asyncio.Lock()
        self._known: OrderedDict[str, Picture] = OrderedDict()
        self._known_bytes = 0
        self._asking = SharedAnswers[Picture | None]()

    async def upload(self, content: bytes) -> Picture:
        """Raises BadPicture, and StartError if the library for it is not installed."""
        async with self._making:
            picture = await asyncio.to_thread(self._make, content)
        await self._ledger.keep_picture(picture)
        return picture

    async def find(self, digest: str) -> Picture | None:
        picture = self._known.get(digest)
        if picture is None:
            picture = await self._asking.of(digest, lambda: self._ledger.picture(digest))
        if picture is not None:
            self._remember(picture)
        return picture

    def _remember(self, picture: Picture) -> None:
        if picture.digest not in self._known:
            self._known_bytes += len(picture.content)
        self._known[picture.digest] = picture
        self._known.move_to_end(picture.digest)
        while self._known_bytes > KEPT_BYTES:
            _, oldest = self._known.popitem(last=False)
            self._known_bytes -= len(oldest.content)

    async def missing(self, digests: Sequence[str]) -> set[str]:
        """Returns those that are not stored. A sale may show the others."""
        return set(digests) - await self._ledger.use_pictures(digests) if digests else set()

    async def forget_unused(self) -> int:
        return await self._ledger.forget_pictures(UNUSED_KEPT_DAYS * DAY_MS, FORGOTTEN_AT_ONCE)
