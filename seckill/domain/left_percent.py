"""How much of a round is left, told roughly: the answer changes a few times in a sale and not with each unit, so that
whoever keeps it has to ask seldom, and nobody learns how fast others sell."""

STEPS = (10, 25, 50, 75, 100)


def left_percent(available: int, total: int) -> int:
    """The lowest step that is not less than what is left; 0 only if nothing is."""
    if available <= 0:
        return 0
    return next((step for step in STEPS if 100 * available <= step * total), STEPS[-1])
