"""The quick way of a claim where traces are on. A traced claim leaves it and becomes an ordinary request. For all
others, this only counts them and looks for one word in their bytes."""

import re
from typing import Any

from seckill.web.claims.claim_protocol import ENTRIES, ClaimingProtocol
from seckill.web.claims.plain_claim import PlainClaim
from seckill.web.claims.traced_claims import CHOSEN, TracedClaims
from seckill.web.connections.guarded_protocol import GuardedProtocol

# Some clients capitalise the first letter, so it is left out.
_WORD = b"raceparent: "
_HEADERS = re.compile(rb"\ntraceparent: ([^\r]+)", re.IGNORECASE)
_END = b"\r\n\r\n"
_begin_untraced = ClaimingProtocol._begin  # found once: it is called for every claim


class TracedProtocol(ClaimingProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._traced: TracedClaims = self.application.traced
        self._sampling = self._traced.sampling

    def _begin_plain(self, data: bytes, said: PlainClaim) -> bool:
        sampling = self._sampling
        if sampling.left <= 1 or data.find(_WORD) >= 0:
            return False  # read part by part, it may be chosen
        sampling.left -= 1
        if super()._begin_plain(data, said):
            return True
        sampling.left += 1  # because it is counted there
        return False

    def _begin(self, data: bytes, sale_id: bytes, what: bytes, headers: dict[bytes, bytes], body: bytes) -> bool:
        sampling = self._sampling
        if what == ENTRIES:  # only claims are traced
            return _begin_untraced(self, data, sale_id, what, headers, body)
        if sampling.left > 1 and data.find(_WORD) < 0:
            sampling.left -= 1
            return _begin_untraced(self, data, sale_id, what, headers, body)
        under = self._traced.choose(self.peer(), _HEADERS.findall(data, 0, data.find(_END)))
        if under is None:
            return _begin_untraced(self, data, sale_id, what, headers, body)
        GuardedProtocol.data_received(self, data)
        self.scope_of_request()[CHOSEN] = under  # its task has not run yet
        return True
