"""How a round went, as everybody may read it."""

import msgspec

from seckill.web.line.line_schemas import Draw


class Story(msgspec.Struct, kw_only=True):
    """Nobody's name is in it. All but `refused` is read from the orders and stays as long as they do."""

    sale_id: str
    round: str
    units: int  # that there were
    begins_at: str
    first_unit_at: str | None  # by the gate's clock; null: nothing has been bought
    last_unit_at: str | None
    gone_at: str | None  # when as many units had been given out as there were; null: never
    seconds_to_sell_out: float | None  # from the beginning until then
    orders: int  # presses that got a unit, or places that were served
    units_given: int  # of these orders: one that came back and was sold again counts twice
    returned: int  # units that came back
    resold: int  # how many of these have gone to another buyer, at least
    may_return: int | None  # while it is sold out: units that are not paid for yet; null: it is over
    # Presses that got nothing, by `code`, as the API processes that run now have counted them: null when none of them
    # has, and less than there were if one was started since.
    refused: dict[str, int] | None
    curve: list[int]  # units that had been given out at each of equal steps from the first to the last
    draw: Draw | None  # its proof; null: nothing was drawn
