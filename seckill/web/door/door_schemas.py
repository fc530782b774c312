"""The audience of a sale and its passes, as they are sent over HTTP."""

from typing import Annotated

import msgspec
from msgspec import Meta

from seckill.domain.audience import EARLY_MAX, EARLY_MINUTES_MAX, GROUP_LENGTH_MAX, GROUPS_MAX
from seckill.domain.door import WORK_MAX, WORK_MIN, PassKind

_DEMANDED = "`work`: the page solves a proof of work first; `check`: a captcha service is asked."
PassNeeded = Annotated[
    str, Meta(pattern=r"^(none|work|check)$(?!\n)", description=_DEMANDED, extra_json_schema={"enum": list(PassKind)})
]
_WORK = "Numbers that whoever solves the proof of work has to try at most, on average half as many."
Work = Annotated[int, Meta(ge=WORK_MIN, le=WORK_MAX, description=_WORK)]
Group = Annotated[str, Meta(min_length=1, max_length=GROUP_LENGTH_MAX)]
Groups = Annotated[list[Group], Meta(max_length=GROUPS_MAX)]


_BY = "The token's claim that counts as one person for the limit."
LimitBy = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:/-]{1,64}$(?!\n)", description=_BY)]
_GROUP = "Sales that name the same group share one limit per buyer."
LimitGroup = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:-]{1,64}$(?!\n)", description=_GROUP)]


class EarlyAccess(msgspec.Struct, forbid_unknown_fields=True):
    groups: Annotated[list[Group], Meta(min_length=1, max_length=GROUPS_MAX)]
    minutes: Annotated[int, Meta(ge=1, le=EARLY_MINUTES_MAX)]


class Audience(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Who is in one of the groups or on the list may buy, and who is in a group of `early` so much earlier. Without
    groups and list, everybody may."""

    groups: Groups = []
    early: Annotated[list[EarlyAccess], Meta(max_length=EARLY_MAX)] = []
    list_: bool = msgspec.field(default=False, name="list")


class AudienceReplaced(msgspec.Struct, kw_only=True):
    buyers: int  # on the list now
    repeated: int  # lines with a buyer who stood there before


class PassSolution(msgspec.Struct, forbid_unknown_fields=True):
    challenge: Annotated[str, Meta(max_length=64)]
    salt: Annotated[str, Meta(max_length=200)]
    signature: Annotated[str, Meta(max_length=64)]
    number: Annotated[int, Meta(ge=0, le=1 << 53)]


class NewPass(msgspec.Struct, forbid_unknown_fields=True):
    """Empty: asks for a challenge. Then what it asks for: `solution` of `work`, `response` and `ticket` of `check`."""

    solution: PassSolution | None = None
    response: Annotated[str, Meta(min_length=1, max_length=8192)] | None = None  # what the captcha's widget gave
    ticket: Annotated[str, Meta(max_length=200)] = ""


class PassChallenge(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`work`: find the `number` up to `maxnumber` for which the hexadecimal SHA-256 of `salt` and that number, both as
    text, is `challenge`. `check`: let the captcha's widget with `site_key` give a response."""

    kind: str
    algorithm: str | None = None
    challenge: str | None = None
    salt: str | None = None
    signature: str | None = None
    maxnumber: int | None = None
    expires_at: str | None = None
    ticket: str | None = None
    site_key: str | None = None


class Pass(msgspec.Struct):
    # Sent with every claim of the sale's round, as the header `Seckill-Pass`.
    pass_: str = msgspec.field(name="pass")
    expires_at: str
