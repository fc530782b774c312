"""A source of public random values, one every few seconds, each with a number. Which of them a draw takes is settled
before anyone can know it. Pure."""

from dataclasses import dataclass

# The placeholder for the number in an address.
NUMBER = "{round}"
# The value is published at least this much later than the list's hash, so that everyone has time to note the hash, even
# if clocks differ.
LATER_MS = 15_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BeaconSource:
    url: str  # with `{round}`
    genesis_s: int  # when its first value was published
    period_s: int
    within_s: int  # if it has not answered for this long, the draw is made from the seed alone

    def number_after(self, listed_ms: int) -> int:
        """Returns the number of the value for a draw whose list was published at that time."""
        after_ms = listed_ms + LATER_MS - 1000 * self.genesis_s
        return max(1, after_ms // (1000 * self.period_s) + 2)

    def at_ms(self, number: int) -> int:
        return 1000 * (self.genesis_s + (number - 1) * self.period_s)

    def given_up_ms(self, listed_ms: int) -> int:
        return self.at_ms(self.number_after(listed_ms)) + 1000 * self.within_s

    def address(self, number: int) -> str:
        return self.url.replace(NUMBER, str(number))
