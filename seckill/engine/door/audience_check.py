"""Who is invited to a sale, and from when on: the one place that decides it for a press, a pass and a page."""

from collections.abc import Collection
from enum import Enum, auto

from seckill.domain.sale import Sale
from seckill.engine.door.audience_lists import AudienceLists


class NotInvited(Enum):
    NOT_INVITED = auto()
    NOT_KNOWN = auto()  # yet: its list is still being read


class Invitations:
    def __init__(self, lists: AudienceLists) -> None:
        self._lists = lists

    def early_ms(self, sale: Sale, user: str, groups: Collection[str]) -> int | NotInvited:
        """How long before others this buyer may buy."""
        audience = sale.door.audience
        if audience.admits(groups):
            return audience.early_ms(groups)
        listed = self._lists.has(sale.id, sale.list_version, user) if audience.listed else False
        if listed is None:
            return NotInvited.NOT_KNOWN
        return 0 if listed else NotInvited.NOT_INVITED
