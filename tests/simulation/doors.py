"""Sales with a line or a shared limit. Drawn apart: runs without them are what they would be otherwise."""

from dataclasses import replace
from random import Random

from seckill.domain.door import Door
from seckill.domain.line import LineOrder, LineRules
from seckill.domain.sale import SaleDraft

# The share of runs with doors. More would leave too few for what happens without any.
HAVE_DOORS = 0.45
GROUP = "simulated"
LIMIT_BY = "household"

PRESS = LineRules()
WAITING_LIST = LineRules(waiting_list=True)
ARRIVAL = LineRules(order=LineOrder.ARRIVAL)
DRAW = LineRules(order=LineOrder.DRAW)
RULES = (PRESS, WAITING_LIST, ARRIVAL, DRAW, DRAW)


def with_doors(drafts: list[SaleDraft], chance: Random) -> list[SaleDraft]:
    if chance.random() >= HAVE_DOORS:
        return drafts
    lined = [_with_line(draft, chance) for draft in drafts]
    return [_by_person(draft, chance) for draft in _sharing(lined)]


def _with_line(draft: SaleDraft, chance: Random) -> SaleDraft:
    rules = chance.choice(RULES)
    if rules.has_line:
        rules = replace(rules, serve_per_s=chance.choice((None, None, 4)))
    later_ms = 0 if draft.recurrence is not None or not rules.draws else chance.randint(300, 1200)  # some come before
    if rules.has_line:  # some have to wait
        draft = replace(draft, units=min(draft.units, chance.choice((1, 2, 2, 4))))
    moved = replace(draft, begins_ms=draft.begins_ms + later_ms, ends_ms=draft.ends_ms + later_ms)
    return replace(moved, door=Door(line=rules))


def _sharing(drafts: list[SaleDraft]) -> list[SaleDraft]:
    """All of one group, if there are several and none repeats."""
    if len(drafts) == 1 or any(draft.recurrence is not None for draft in drafts):
        return drafts
    first = drafts[0]
    return [
        replace(draft, lanes=first.lanes, limit_per_buyer=first.limit_per_buyer, limit_group=GROUP) for draft in drafts
    ]


def _by_person(draft: SaleDraft, chance: Random) -> SaleDraft:
    """Where it can be. Sales of a group agree, because they are asked in the same way."""
    if draft.lanes > 1 or draft.limit_group is not None or chance.random() < 0.5:
        return draft
    return replace(draft, limit_by=LIMIT_BY)


def person_of(user: str) -> str:
    """Two buyers who come early are one household; the one who comes last is a household alone."""
    return f"home{int(user[1:]) // 2}" if user[0] == "u" else user
