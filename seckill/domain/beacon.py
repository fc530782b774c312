"""A source of public random values, one every few seconds, each with a number: which of them a draw takes is settled
before anybody knows it. Pure."""

from dataclasses import dataclass

# What stands in an address in the place of the number.
NUMBER = "{round}"
# So much later than the list's hash is published the value is at least: everybody has time to note the hash, and clocks
# may differ.
LATER_MS = 15_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BeaconSource:
    url: str  # with `{round}`
    genesis_s: int  # when its first value was published
    period_s: int
    within_s: int  # if it has not answered for so long, the draw is made by the seed alone

    def number_after(self, listed_ms: int) -> int:
        """Of the value that a draw takes whose list was published then."""
        after_ms = listed_ms + LATER_MS - 1000 * self.genesis_s
        return max(1, after_ms // (1000 * self.period_s) + 2)

    def at_ms(self, number: int) -> int:
        return 1000 * (self.genesis_s + (number - 1) * self.period_s)

    def given_up_ms(self, listed_ms: int) -> int:
        return self.at_ms(self.number_after(listed_ms)) + 1000 * self.within_s

    def address(self, number: int) -> str:
        return self.url.replace(NUMBER, str(number))
