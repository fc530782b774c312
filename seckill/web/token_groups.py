"""Which groups a buyer is in, as the token says."""

from typing import Any

import msgspec

from seckill.web.buyer_tokens import Buyer


class TokenGroups:
    """Read only for sales that ask for groups. What is not a text or a list of texts names none."""

    def __init__(self, claim: str) -> None:
        shape: Any = msgspec.defstruct("_Groups", [("groups", list[str] | str, "")], rename={"groups": claim})
        self._decoder = msgspec.json.Decoder(shape)

    def of(self, buyer: Buyer) -> frozenset[str]:
        try:
            found = self._decoder.decode(buyer.claims).groups
        except msgspec.MsgspecError:
            return frozenset()
        return frozenset([found] if isinstance(found, str) else found) - {""}
