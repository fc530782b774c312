"""Which value of a beacon a draw takes: held against trying them one after the other, in all that is written of it."""

from random import Random

from seckill.client.draw_check import BeaconOrigin, due_number
from seckill.domain.beacon import BeaconSource

LATER_MS = 15_000


def test_it_is_the_first_that_is_published_after_the_list() -> None:
    chance = Random(1)
    for _ in range(500):
        genesis_s, period_s = chance.randrange(1_000), chance.choice((1, 3, 30, 60))
        listed_ms = chance.choice((0, 1000 * (genesis_s + period_s) - LATER_MS, chance.randrange(2_000_000)))
        number = 1
        while 1000 * (genesis_s + (number - 1) * period_s) <= listed_ms + LATER_MS:
            number += 1
        facts = {"url": "https://x/{round}", "genesis_s": genesis_s, "period_s": period_s, "within_s": 60}
        source = BeaconSource(**facts)  # type: ignore[arg-type]
        assert source.number_after(listed_ms) == number
        assert source.at_ms(number) > listed_ms + LATER_MS >= source.at_ms(number - 1) or number == 1
        assert source.given_up_ms(listed_ms) == source.at_ms(number) + 60_000
        assert source.address(number) == f"https://x/{number}"
        assert due_number(BeaconOrigin(**facts), listed_ms) == number, "the check"  # type: ignore[arg-type]
