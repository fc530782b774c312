"""Finds the buyer by the token in a header, and refuses requests without a valid one."""

import time

from seckill.domain.outcome import Outcome
from seckill.web.buyers.buyer_tokens import Buyer, Buyers, Unauthenticated, bearer
from seckill.web.buyers.token_keys import KeysNotKnown
from seckill.web.incidents import Incident
from seckill.web.problems import HttpProblem, suspicious

_BEARER = b"Bearer "


def authenticate(buyers: Buyers, header: bytes | None) -> Buyer:
    """The refusal repeats nothing of what was sent."""
    now = time.time()
    if header is not None and header.startswith(_BEARER):
        buyer = buyers.believe(header[len(_BEARER) :], now)
        if buyer is not None:
            return buyer
    token = bearer(header)
    if token is None:
        raise HttpProblem.of(Outcome.UNAUTHENTICATED, "Sign in first: Authorization: Bearer <token>.")
    try:
        return buyers.verify(token, now)
    except KeysNotKnown:
        raise HttpProblem.of(Outcome.NOT_READY, "Your sign-in cannot be checked now; please try again.") from None
    except Unauthenticated as error:
        problem = HttpProblem.of(Outcome.UNAUTHENTICATED, error.reason)
        raise (suspicious(problem, Incident.BAD_SIGNATURE) if error.forged else problem) from None
