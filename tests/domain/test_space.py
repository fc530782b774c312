"""When a disk or a memory is nearly full."""

import pytest

from seckill.domain.space import Space, SpaceKind, scarcest

GB = 10**9


def disk(free_bytes: float, size_bytes: float, where: str = "/") -> Space:
    return Space(SpaceKind.DISK, where, int(free_bytes), int(size_bytes))


@pytest.mark.parametrize(
    ("space", "short", "ample"),
    [
        (disk(0, 10 * GB), True, False),
        (disk(0.9 * GB, 10 * GB), True, False),
        (disk(1.1 * GB, 10 * GB), False, False),  # between the two: it stays as it was
        (disk(1.3 * GB, 10 * GB), False, True),
        (disk(4.9 * GB, 2000 * GB), True, False),
        (disk(5.1 * GB, 2000 * GB), False, False),  # a quarter of a per cent, but room for millions of orders
        (disk(6.3 * GB, 2000 * GB), False, True),
    ],
)
def test_space_is_short_by_its_share_and_by_its_bytes(space: Space, short: bool, ample: bool) -> None:
    assert (space.is_short, space.is_ample) == (short, ample)


def test_the_one_with_the_smallest_share_counts() -> None:
    memory = Space(SpaceKind.MEMORY, "a", 3, 4)
    spaces = [disk(5, 100, "a"), disk(4, 10, "b"), disk(6, 100, "c"), memory]
    assert scarcest(spaces) == {SpaceKind.DISK: spaces[0], SpaceKind.MEMORY: memory}
    assert scarcest([]) == {}
