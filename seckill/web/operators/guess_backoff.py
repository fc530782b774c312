"""An address that guesses admin keys has to wait, longer each time. Other addresses do not notice.

While an address has to wait, none of its keys is compared, not even the right one: otherwise it could go on guessing,
and only honest clients would wait. So behind a proxy the client's address must be known (`SECKILL_TRUSTED_PROXIES`);
otherwise one guesser makes all operators wait, a minute at most.
"""

import hashlib
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from seckill.web.requests.client_address import prefix_of

# Allows for a key that was mistyped, or changed a moment ago.
FREE_GUESSES = 5
WAIT_S_MAX = 60
# After this long without a guess, everything is forgotten.
FORGOTTEN_S = 600.0
ADDRESSES_MAX = 10_000
KEYS_MAX = 8


@dataclass(slots=True)
class _Guesser:
    guesses: int = 0
    last_s: float = 0.0
    until_s: float = 0.0
    known: deque[bytes] = field(default_factory=lambda: deque(maxlen=KEYS_MAX))  # digests of the latest wrong keys


class GuessBackoff:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._salt = secrets.token_bytes(16)
        self._guessers: OrderedDict[str, _Guesser] = OrderedDict()  # the latest guesser is last

    def wait_s(self, address: str) -> int:
        """Returns how long this address has to wait before it is heard again; 0: not at all."""
        guesser = self._guessers.get(prefix_of(address))
        return 0 if guesser is None else max(0, -int((self._clock() - guesser.until_s) // 1))

    def wrong(self, address: str, key: str) -> None:
        """Counts a wrong key. The same one again is not a guess, but a page left open or an unchanged script."""
        now, prefix = self._clock(), prefix_of(address)
        guesser = self._guessers.pop(prefix, None)
        if guesser is None or now - guesser.last_s > FORGOTTEN_S:
            guesser = _Guesser()
        self._guessers[prefix] = guesser
        if len(self._guessers) > ADDRESSES_MAX:
            self._guessers.popitem(last=False)
        guesser.last_s = now
        digest = hashlib.blake2b(key.encode(errors="surrogatepass"), digest_size=8, key=self._salt).digest()
        if digest in guesser.known:
            return
        guesser.guesses += 1
        guesser.known.append(digest)
        if guesser.guesses > FREE_GUESSES:
            guesser.until_s = now + min(WAIT_S_MAX, 2 ** min(guesser.guesses - FREE_GUESSES - 1, 10))
