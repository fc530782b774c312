"""The quick way of a claim: from the bytes that arrived to the gate and back, in one turn of the event loop each.

Nearly all claims arrive whole, in one piece, with nothing unusual about them. For these, nothing is made of what an
ASGI server makes for a request: no parser's callbacks, no cycle, no task, no messages (what that saves: docs/speed.md).
Whatever else happens to such a claim, or to its connection meanwhile, turns it into an ordinary request: its bytes go
to the parser as if they had just arrived, and the answer that is on its way becomes that request's. So connections,
pipelines and draining need no second set of rules.

    plain bytes   `plain_request`, answered by `_Press` with one write
    short way     parsed by the parser (body in pieces, pipelined, unusual headers), answered without a task
    long way      an ASGI request: repeats, sales at the edge of two rounds, clients that do not read
"""

import re
import time
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from seckill.domain import Answer, Sale
from seckill.web.claim import COUNTED, ClaimRoute, Reply, problem_reply
from seckill.web.guard import GuardedProtocol

# A request that every parser reads alike: one space where one is usual, no spaces around values, nothing but visible
# ASCII. Longer ones go the other way, so none of the limits can be exceeded here.
PLAIN_BYTES_MAX = 8 * 1024
PLAIN_HEADERS_MAX = 64
_PLAIN = re.compile(
    rb"POST /v1/sales/([0-9A-Za-z]{1,32})/orders HTTP/1\.1((?:\r\n[A-Za-z0-9_-]++: [!-~][ -~]*+(?<! ))++)\r\n\r\n"
)
# What changes how a request or its connection is read.
_UNUSUAL = frozenset((b"transfer-encoding", b"expect", b"upgrade", b"te", b"trailer", b"proxy-connection"))
# A browser sends twenty headers. Those that mean nothing here are not taken apart: 8 µs instead of 11 for its request.
_NOTABLE = re.compile(
    rb"\n(authorization|idempotency-key|host|content-length|connection|%b): ([^\r]+)" % b"|".join(sorted(_UNUSUAL)),
    re.IGNORECASE,
)
_LENGTHS = {b"%d" % length: length for length in range(1024)}


def plain_request(data: bytes) -> tuple[bytes, dict[bytes, bytes], bytes] | None:
    """The sale's id, the notable headers and the body of a claim that is all there is in `data`; None: let the parser
    see."""
    if len(data) > PLAIN_BYTES_MAX:
        return None
    found = _PLAIN.match(data)
    if found is None:
        return None
    sale_id, lines = found.groups()
    fields = _NOTABLE.findall(lines)
    headers = {name.lower(): value for name, value in fields}
    # A header that is there twice, and what only a parser may judge.
    if len(headers) < len(fields) or lines.count(b"\n") > PLAIN_HEADERS_MAX or not _UNUSUAL.isdisjoint(headers):
        return None
    body = data[found.end() :]
    if _LENGTHS.get(headers.get(b"content-length", b"0")) != len(body) or b"host" not in headers:
        return None
    if b"connection" in headers and headers[b"connection"].lower() != b"keep-alive":
        return None
    return sale_id, headers, body


class Heads:
    """The first lines of answers. They change once a second, with the date."""

    def __init__(self) -> None:
        self._default_headers: list[tuple[bytes, bytes]] = []
        self._heads: dict[int, bytes] = {}

    def of(self, status: int, default_headers: list[tuple[bytes, bytes]]) -> bytes:
        if default_headers is not self._default_headers:
            self._default_headers, self._heads = default_headers, {}
        head = self._heads.get(status)
        if head is None:
            lines = (b"%b: %b\r\n" % header for header in default_headers)
            head = self._heads[status] = b"".join([STATUS_LINE[status], *lines])
        return head


class Outbox:
    """What is answered at once in a turn of the event loop is sent together at its end. Then the code for the one and
    for the other stays at hand, and a proxy on this machine is woken once for all answers instead of for each."""

    def __init__(self) -> None:
        self._with_answers: list[ClaimingProtocol] = []

    def add(self, protocol: "ClaimingProtocol") -> None:
        if not self._with_answers:
            protocol.loop.call_soon(self._send)
        self._with_answers.append(protocol)

    def _send(self) -> None:
        protocols, self._with_answers = self._with_answers, []
        for protocol in protocols:
            protocol.send()


class _Press:
    """A claim on its way. The batcher hands it the answer, and it is answered then and there, without a callback that
    has to wait for the next turn of the event loop."""

    __slots__ = ("began_s", "cycle", "data", "protocol", "sale")
    sale: Sale

    def __init__(self, protocol: "ClaimingProtocol", data: bytes, cycle: Any) -> None:
        self.protocol = protocol
        self.data = data
        self.cycle = cycle  # of uvicorn's, once it is an ordinary request
        self.began_s = time.monotonic()

    def waits_for(self, sale: Sale) -> None:
        self.sale = sale

    def done(self) -> bool:
        return False  # whoever hangs up is admitted all the same, and finds the order by the key

    def set_result(self, answer: Answer) -> None:
        self.protocol.finish(self, answer)


class ClaimingProtocol(GuardedProtocol):
    heads: ClassVar[Heads] = Heads()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._claims: ClaimRoute = self.app.claims
        self._outbox: Outbox = self.app.outbox
        self._answer_to_send = b""
        self._press: _Press | None = None  # on its way, and nothing else has happened on this connection since
        self._became: _Press | None = None  # being parsed, as it is to become an ordinary request
        self._without_body: Any = None  # the cycle of a claim whose body has not arrived yet

    # Plain bytes

    def data_received(self, data: bytes) -> None:
        self.send()
        if self._press is not None:
            self._make_ordinary(self._press)
        elif self.is_quiet() and not self.flow.write_paused:
            plain = plain_request(data)
            if plain is not None and self._begin(data, *plain):
                return
        super().data_received(data)

    def _begin(self, data: bytes, sale_id: bytes, headers: dict[bytes, bytes], body: bytes) -> bool:
        press = self._press = _Press(self, data, None)
        self._read_by = None
        try:
            begun = self._claims.begin(sale_id.decode(), headers, body, press)
        except Exception as error:
            begun = problem_reply(error)
        if begun is False:
            self._press = None
        elif isinstance(begun, Reply):
            self._write_plain(begun)
            self._outbox.add(self)
        return begun is not False

    def _write_plain(self, reply: Reply) -> None:
        self._press = None
        head = self.heads.of(reply.status, self.server_state.default_headers)
        self._answer_to_send = b"".join((head, reply.headers, b"\r\n", reply.body))
        self.server_state.total_requests += 1
        self._read_by = self.loop.time() + self.timeout_keep_alive

    def send(self) -> None:
        if self._answer_to_send and not self.transport.is_closing():
            self.transport.write(self._answer_to_send)
        self._answer_to_send = b""

    def _make_ordinary(self, press: _Press) -> None:
        self._press, self._became = None, press
        super().data_received(press.data)

    def _answering(self) -> bool:
        return self._press is not None or super()._answering()

    def shutdown(self) -> None:
        self.send()
        if self._press is not None:
            self._make_ordinary(self._press)
        super().shutdown()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """A client that has nothing more to say may still wait for the answer to its claim, which comes soon. What
        streams, or waits for news, ends as before."""
        self.send()
        if self._press is not None:
            self._make_ordinary(self._press)
        if not self._answering() or self.cycle.more_body or ClaimRoute.sale_in(self.cycle.scope) is None:
            return super().eof_received()
        self.cycle.keep_alive = False
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._press, self._answer_to_send = None, b""
        super().connection_lost(exc)

    # The short way. uvicorn makes a cycle for each request, in order, and starts it here. That of a claim is answered
    # without being run.

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        # A client that does not read must be waited for, which only a task can do.
        unusual = cycle.waiting_for_100_continue or self.flow.write_paused
        if self._became is None and (unusual or ClaimRoute.sale_in(cycle.scope) is None):
            super()._start_asgi_task(cycle, app)
        elif cycle.more_body:
            self._without_body = cycle
        else:
            self._answer(cycle)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self._without_body is not None:
            cycle, self._without_body = self._without_body, None
            self._answer(cycle)

    def _answer(self, cycle: Any) -> None:
        if self._became is not None:
            self._became.cycle, self._became = cycle, None
            return
        scope = cycle.scope
        sale_id = ClaimRoute.sale_in(scope)
        assert sale_id is not None
        press = _Press(self, b"", cycle)
        try:
            begun = self._claims.begin(sale_id, dict(scope["headers"]), bytes(cycle.body), press)
        except Exception as error:
            begun = problem_reply(error)
        if begun is False:
            super()._start_asgi_task(cycle, self.app)
        elif isinstance(begun, Reply):
            self._write(cycle, begun)

    def finish(self, press: _Press, answer: Answer) -> None:
        try:
            reply = self._claims.finish(press.sale, answer, time.monotonic() - press.began_s)
        except Exception as error:
            reply = problem_reply(error)
        if self._press is press:
            if reply is not None and not self.transport.is_closing():
                self._write_plain(reply)
                self.send()
                return
            self._make_ordinary(press)
        cycle = press.cycle
        if cycle is None:
            return  # the client is gone
        if reply is None:
            cycle.scope[COUNTED] = True
            super()._start_asgi_task(cycle, self.app)  # which asks the gate again, and gets the same answer
        else:
            self._write(cycle, reply)

    def _write(self, cycle: Any, reply: Reply) -> None:
        if cycle.disconnected or self.transport.is_closing():
            return
        head = self.heads.of(reply.status, self.server_state.default_headers)
        close = b"" if cycle.keep_alive else b"connection: close\r\n"
        self.transport.write(b"".join((head, reply.headers, close, b"\r\n", reply.body)))
        cycle.response_started = cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()
