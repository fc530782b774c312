"""Decides who is invited to a sale, and from when on. Presses, passes and pages all ask here."""

from collections.abc import Collection
from enum import Enum, auto

from seckill.domain.sale import Sale
from seckill.engine.door.audience_lists import AudienceLists


class NotInvited(Enum):
    NOT_INVITED = auto()
    NOT_KNOWN = auto()  # the sale's list is still being read


class Invitations:
    def __init__(self, lists: AudienceLists) -> None:
        self._lists = lists

    def early_ms(self, sale: Sale, user: str, groups: Collection[str]) -> int | NotInvited:
        """Returns how much earlier than others this buyer may buy."""
        audience = sale.door.audience
        if audience.admits(groups):
            return audience.early_ms(groups)
        listed = self._lists.has(sale.id, sale.list_version, user) if audience.listed else False
        if listed is None:
            return NotInvited.NOT_KNOWN
        return 0 if listed else NotInvited.NOT_INVITED
