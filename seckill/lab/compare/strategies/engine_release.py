from seckill.lab.compare.strategies.engine import EngineStrategy


class EngineRelease(EngineStrategy):
    """This project, when orders fall through: every fourth buyer cancels.

    Cures   SQL decides first (the state of the order and a note of the release in one transaction), then the gate is
            told the number of the order, and gives its unit back once, however often it is told.
    Breaks  nothing of the above.
    """

    name = "engine-release"
    summary = "an order fell through: released by its number"
    dies = None
    returns = True
