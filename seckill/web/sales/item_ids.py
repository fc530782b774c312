"""The public ids of items, remembered: every claim names one, and there are few."""

from seckill.domain.public_id import PublicIds

REMEMBERED_MAX = 10_000


class ItemIds:
    def __init__(self, public_ids: PublicIds) -> None:
        self._public_ids = public_ids
        self._texts: dict[int, str] = {}
        self._numbers: dict[str, int] = {}  # keyed by ids as we spell them, so no one can fill it with anything else

    def of(self, number: int) -> str:
        text = self._texts.get(number)
        if text is None:
            if len(self._texts) >= REMEMBERED_MAX:
                self._texts.clear()
                self._numbers.clear()
            text = self._texts[number] = self._public_ids.encode(number)
            self._numbers[text] = number
        return text

    def number(self, text: str) -> int | None:
        """Returns None if the id was never given out."""
        number = self._numbers.get(text)
        return self._public_ids.decode(text) if number is None else number
