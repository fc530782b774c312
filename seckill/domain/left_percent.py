"""How much of a round is left, in rough steps. The answer only changes a few times in a sale and not with each unit, so
caches rarely have to ask again, and competitors do not learn how fast a shop sells."""

STEPS = (10, 25, 50, 75, 100)


def left_percent(available: int, total: int) -> int:
    """Returns the lowest step that is not below the part left; 0 only if nothing is left."""
    if available <= 0:
        return 0
    return next((step for step in STEPS if 100 * available <= step * total), STEPS[-1])
