"""Reads from the token which groups a buyer is in."""

from typing import Any

import msgspec

from seckill.web.buyers.buyer_tokens import Buyer


class TokenGroups:
    """Groups are only read for sales that ask for them. A claim that is neither a text nor a list of texts names
    none."""

    def __init__(self, claim: str) -> None:
        shape: Any = msgspec.defstruct("_Groups", [("groups", list[str] | str, "")], rename={"groups": claim})
        self._decoder = msgspec.json.Decoder(shape)

    def of(self, buyer: Buyer) -> frozenset[str]:
        try:
            found = self._decoder.decode(buyer.claims).groups
        except msgspec.MsgspecError:
            return frozenset()
        return frozenset([found] if isinstance(found, str) else found) - {""}
