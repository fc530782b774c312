"""Reads from the buyer's token the person by whom a sale's limit counts: a household, a device, a card."""

from functools import lru_cache
from typing import Any

import msgspec

from seckill.domain.buyer_id import BadBuyerId, buyer_id
from seckill.domain.outcome import Outcome
from seckill.web.buyers.buyer_tokens import Buyer
from seckill.web.problems import HttpProblem

CLAIMS_MAX = 1_000  # more are not on sale at once


@lru_cache(CLAIMS_MAX)
def _decoder(claim: str) -> msgspec.json.Decoder[Any]:
    shape: Any = msgspec.defstruct("_Person", [("person", str | int | None, None)], rename={"person": claim})
    return msgspec.json.Decoder(shape)


def person_of(buyer: Buyer, claim: str) -> str:
    """Returns the person in one spelling, for the same reason as a buyer's id. Raises HttpProblem."""
    try:
        found = _decoder(claim).decode(buyer.claims).person
    except msgspec.MsgspecError:
        raise _unknown(claim, "is neither a text nor a whole number") from None
    if found is None or isinstance(found, bool):
        raise _unknown(claim, "is missing")
    try:
        return buyer_id(str(found))
    except BadBuyerId as error:
        raise _unknown(claim, str(error)) from None


def _unknown(claim: str, says: str) -> HttpProblem:
    detail = f"The limit of this sale counts by the token's claim {claim}, which {says}."
    return HttpProblem.of(Outcome.PERSON_UNKNOWN, detail)
