"""The audience of a sale, also when a buyer was let in before and the groups were not kept."""

from seckill.domain.audience import EVERYBODY, Audience, EarlyAccess


def test_who_was_let_in_by_a_group_stays_where_the_groups_were_not_kept() -> None:
    assert EVERYBODY.still_admits(None)
    assert Audience(groups=("vip",), listed=True).still_admits(None)
    assert Audience(early=(EarlyAccess(groups=("vip",), minutes=5),), listed=True).still_admits(None)
    assert not Audience(listed=True).still_admits(None), "the list alone decides"


def test_groups_that_were_kept_are_asked_again() -> None:
    audience = Audience(groups=("vip",))
    assert audience.still_admits(("vip", "staff"))
    assert not audience.still_admits(("staff",))
