"""The claim route where traces are on. For a traced claim it records how long the answer took, and the outcome.

Nothing that a caller sends about traces is ever an error: an unreadable header counts as not sent.
"""

from collections.abc import Iterable
from typing import Any

import structlog

from seckill.domain.trace import HEADER, Trace, read_trace
from seckill.engine.traces.sampling import Sampling
from seckill.engine.traces.traced_desk import PRESS
from seckill.ports.tracer import Tracer, TraceSpanKind
from seckill.web.claims.claim import BEGUN, ClaimRoute
from seckill.web.requests.client_address import ClientAddresses

# In the scope of a traced claim that came by the quick way, this key has its trace.
CHOSEN = "seckill.traced_under"
NAME = "POST /v1/sales/{sale_id}/orders"
_HEADER = HEADER.encode()
_LOCATION = b"/v1/orders/"


class TracedClaims:
    def __init__(self, claims: ClaimRoute, tracer: Tracer, sampling: Sampling, addresses: ClientAddresses) -> None:
        self._claims = claims
        self._tracer = tracer
        self._addresses = addresses
        self.sampling = sampling

    def choose(self, peer: str, parents: Iterable[bytes]) -> str | None:
        """Returns the trace of a claim, or None if it is not traced. `parents`: its header's values, which only count
        if there is exactly one."""
        said = list(parents)
        believed = len(said) == 1 and self._addresses.is_near(peer)
        return self.sampling.choose(_read(said[0]) if believed else None)

    async def __call__(self, sale_id: str, scope: Any, receive: Any, send: Any) -> None:
        under = self._chosen(scope)
        if under is None:
            await self._claims(sale_id, scope, receive, send)
            return
        facts = {"http.request.method": "POST", "http.route": "/v1/sales/{sale_id}/orders", "seckill.sale": sale_id}
        span = self._tracer.begin(NAME, under, facts, kind=TraceSpanKind.SERVER)

        async def send_noted(message: Any) -> None:
            if message["type"] == "http.response.start":
                span.note({"http.response.status_code": message["status"], **_order_in(message["headers"])})
                if message["status"] >= 500:
                    span.fail(f"status {message['status']}")
            await send(message)

        answered = PRESS.set(span)
        try:
            with structlog.contextvars.bound_contextvars(trace_id=span.trace_id):
                await self._claims(sale_id, scope, receive, send_noted)
        except BaseException as error:  # a client that hangs up cancels it
            span.fail(type(error).__name__)
            raise
        finally:
            PRESS.reset(answered)
            span.end()

    def _chosen(self, scope: Any) -> str | None:
        if CHOSEN in scope:
            under: str = scope[CHOSEN]
            return under
        if BEGUN in scope:  # the quick way has decided not to trace it
            return None
        peer = scope["client"][0] if scope["client"] else ""
        return self.choose(peer, (value for name, value in scope["headers"] if name == _HEADER))


def _read(said: bytes) -> Trace | None:
    return read_trace(said.strip())


def _order_in(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Returns the order in the answer."""
    where = next((value for name, value in headers if name == b"location"), b"")
    return {"seckill.order": where.removeprefix(_LOCATION).decode()} if where.startswith(_LOCATION) else {}
