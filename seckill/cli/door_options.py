"""Options that say who may buy in a sale."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from seckill.cli.parameters import whole
from seckill.errors import SeckillError


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AudienceOptions:
    """The options that may be changed while a sale is on."""

    pass_: Annotated[
        Literal["none", "work", "check"] | None,
        Parameter(name="--pass", help="What a buyer needs before buying: a proof of work, or a captcha."),
    ] = None
    pass_work: Annotated[int | None, Parameter(converter=whole, help="Hashes of that work, at most.")] = None
    groups: Annotated[
        list[str] | None, Parameter(name="--group", negative=(), help="Only for buyers of this group; may be repeated.")
    ] = None
    early: Annotated[
        list[str] | None,
        Parameter(name="--early", negative=(), help="GROUP:MINUTES that a group may buy earlier; may be repeated."),
    ] = None
    listed: Annotated[
        bool, Parameter(name="--listed", negative=(), help="Also for the buyers on a list, uploaded over the API.")
    ] = False

    def given(self) -> dict[str, Any]:
        """Under the names that the API has for them."""
        given: dict[str, Any] = {"pass": self.pass_, "pass_work": self.pass_work}
        if self.groups or self.early or self.listed:
            early = [_early(each) for each in self.early or ()]
            given["audience"] = {"groups": self.groups or [], "early": early, "list": self.listed}
        return {name: value for name, value in given.items() if value is not None}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DoorOptions(AudienceOptions):
    limit_by: Annotated[
        str | None, Parameter(help="The token's claim that counts as one person for the limit; sub, if not given.")
    ] = None
    limit_group: Annotated[str | None, Parameter(help="Sales that name the same group share one limit.")] = None
    order: Annotated[
        Literal["press", "arrival", "draw"] | None,
        Parameter(help="How buyers get units: by pressing first, or by their places in a line; see docs/line.md."),
    ] = None
    waiting_list: Annotated[
        bool, Parameter(negative=(), help="After the sell-out, units that come back go to those who wait for them.")
    ] = False
    serve_per_s: Annotated[
        int | None, Parameter(converter=whole, help="How many people in the line are served in a second, at most.")
    ] = None
    beacon: Annotated[
        bool, Parameter(negative=(), help="The draw waits for a public value, given when the list is closed.")
    ] = False

    def given(self) -> dict[str, Any]:
        given: dict[str, Any] = {"limit_by": self.limit_by, "limit_group": self.limit_group}
        given |= {"order": self.order, "serve_per_s": self.serve_per_s}
        given |= {"waiting_list": self.waiting_list or None, "beacon": self.beacon or None}
        return super().given() | {name: value for name, value in given.items() if value is not None}


NO_AUDIENCE = AudienceOptions()
NO_DOOR = DoorOptions()


def _early(text: str) -> dict[str, Any]:
    group, _, minutes = text.rpartition(":")
    if not group or not minutes.isascii() or not minutes.isdigit():
        raise SeckillError(f"--early {text}: give a group and a number of minutes, such as vip:10.")
    return {"groups": [group], "minutes": int(minutes)}
