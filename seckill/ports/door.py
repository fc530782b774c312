"""Other people's services that are asked before a pass is issued or a draw is made. They may be away, and never hold up
a claim."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from seckill.errors import SeckillError


class ServiceAway(SeckillError):
    """The service did not answer in time, or not in an understandable way."""


class QuestionRefused(ServiceAway):
    """The service answered that the question makes no sense."""


class HumanCheck(Protocol):
    async def passed(self, response: str, address: str) -> bool:
        """Returns whether the service has given out this response, and it is used for the first time. Raises
        ServiceAway."""


class RiskDecision(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    CHALLENGE = "challenge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Applicant:
    """Who wants a pass."""

    buyer: str
    sale_id: str
    round: str
    address: str
    agent: str


class BeaconReader(Protocol):
    async def value(self, address: str, number: int) -> str:
        """The public random value of this number, hexadecimal. Raises ServiceAway."""


class RiskHook(Protocol):
    async def judge(self, applicant: Applicant) -> RiskDecision:
        """Raises ServiceAway."""
