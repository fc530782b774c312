"""Translates a sale's door between the API and the domain: who may press in a sale."""

import msgspec

from seckill.domain import audience as domain
from seckill.domain.audience import EVERYBODY
from seckill.domain.door import Door, PassKind
from seckill.settings import Settings
from seckill.web.door.door_schemas import Audience, EarlyAccess
from seckill.web.problems import invalid
from seckill.web.sales.line_of_sale import line_rules_of
from seckill.web.schemas import NewSale, SalePatch


def door_of(new: NewSale, settings: Settings) -> Door:
    """`OPEN_DOOR` or one that differs from it, see there."""
    audience = _audience(new.audience)
    door = Door(pass_kind=PassKind(new.pass_), work=new.pass_work, audience=audience, line=line_rules_of(new, settings))
    _check(door, settings)
    return door


def door_after(patch: SalePatch, known: Door, settings: Settings) -> Door | None:
    """Returns None if the patch leaves the door as it is."""
    if patch.pass_ is None and patch.pass_work is None and patch.audience is msgspec.UNSET:
        return None
    door = Door(
        pass_kind=known.pass_kind if patch.pass_ is None else PassKind(patch.pass_),
        work=known.work if patch.pass_work is None else patch.pass_work,
        audience=known.audience if patch.audience is msgspec.UNSET else _audience(patch.audience),
        line=known.line,
    )
    _check(door, settings)
    return door


def check_shared_limit(new: NewSale) -> None:
    if new.limit_by != "sub" and new.lanes > 1:
        raise invalid("lanes", "must be 1: buyers who are one person would be in different lanes")
    if new.limit_group is not None and new.repeat is not None:
        raise invalid("limit_group", "cannot be of a sale that repeats: each of its rounds has a limit of its own")


def audience_shown(audience: domain.Audience) -> Audience | None:
    if audience == EVERYBODY:
        return None
    early = [EarlyAccess(list(each.groups), each.minutes) for each in audience.early]
    return Audience(groups=list(audience.groups), early=early, list_=audience.listed)


def _audience(given: Audience | None) -> domain.Audience:
    if given is None:
        return EVERYBODY
    # a list of groups that happens to be empty must not let everyone in
    if not (given.groups or given.early or given.list_):
        raise invalid("audience", "names nobody: say who may buy, or null for everybody")
    for field, groups in (
        ("audience.groups", given.groups),
        *((f"audience.early[{place}].groups", early.groups) for place, early in enumerate(given.early)),
    ):
        if not all(group.isprintable() and group == group.strip() for group in groups):
            raise invalid(field, "must be names in one line, without spaces around them")
    early = tuple(domain.EarlyAccess(groups=tuple(each.groups), minutes=each.minutes) for each in given.early)
    return domain.Audience(groups=tuple(given.groups), early=early, listed=given.list_)


def _check(door: Door, settings: Settings) -> None:
    if door.pass_kind is PassKind.CHECK and not (settings.check_url and settings.check_secret):
        raise invalid("pass", "cannot be check: SECKILL_CHECK_URL and SECKILL_CHECK_SECRET are not set")
    if door.line.draws and door.audience.early:
        raise invalid(
            "audience.early", f"means nothing with order {door.line.order}: no one is served before the sale begins"
        )
