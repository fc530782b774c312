"""The quick way of a claim: from the bytes that arrived to the gate and back, in one turn of the event loop each.

Nearly all claims arrive in one piece, with nothing unusual about them. They need nothing of what an ASGI server makes
for a request: no parser callbacks, no cycle, no task, no messages (docs/speed.md says what that saves). Anything else
that happens to such a claim or its connection meanwhile turns it into an ordinary request: its bytes go to the parser
as if they had just arrived, and the request waits for the decision that is on its way. So connections, pipelines and
draining need no second set of rules. Joining a line (`line_join.py`) goes the same way, to the ledger and back.
"""

import asyncio
import re
from typing import Any

from seckill.domain.admission import Answer, Claim
from seckill.domain.sale import Sale
from seckill.engine.claims.admission_desk import ClaimInProgress
from seckill.engine.line.joining import Joined
from seckill.web.claims.claim import BEGUN, ClaimReply, ClaimRoute, problem_reply
from seckill.web.claims.claim_wait import CLOSED
from seckill.web.claims.plain_claim import PlainClaim
from seckill.web.claims.plain_request import ORIGIN, PLAIN, PLAIN_WITH_ORIGIN
from seckill.web.claims.turn_buffer import TurnBuffer
from seckill.web.connections.guarded_protocol import GuardedProtocol
from seckill.web.cross_origin import CrossOrigin
from seckill.web.line.line_join import JoinInProgress, JoinRoute
from seckill.web.requests.request_ids import HEADER, request_id

# The client's address according to a proxy. It matters only behind a trusted proxy, and when a claim is refused.
_FORWARDED = re.compile(rb"\n(x-forwarded-for|forwarded): ([^\r]+)", re.IGNORECASE)
_NAMED = HEADER + b": "
ENTRIES = b"entries"
_END = b"\r\n\r\n"


def _forwarded(data: bytes) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name.lower(), value) for name, value in _FORWARDED.findall(data, 0, data.find(_END)))


def _is_awaited(scope: Any) -> bool:
    return ClaimRoute.sale_in(scope) is not None or JoinRoute.is_join(scope)


class _Press(ClaimInProgress):
    """A claim that is answered in the same turn of the event loop as the gate's answer, without a callback that would
    wait for the next turn."""

    __slots__ = ("awaited", "data", "of_origin", "protocol", "request_id")

    def __init__(self, protocol: "ClaimingProtocol", data: bytes, request_id: bytes, of_origin: bytes) -> None:
        self.protocol = protocol
        self.data = data
        self.request_id = request_id
        self.of_origin = of_origin  # lines of the answer
        # set if the claim became a request, which waits for this
        self.awaited: asyncio.Future[tuple[Claim, Sale, Answer]] | None = None

    def done(self) -> bool:
        return False  # a buyer who hangs up is still admitted, and finds the order by the key

    def decided(self, sale: Sale, answer: Answer) -> None:
        if self.awaited is None:
            self.protocol.decided(self, sale, answer)
        elif not self.awaited.done():
            self.awaited.set_result((self.claim, sale, answer))


class _Join(JoinInProgress):
    __slots__ = ("awaited", "data", "of_origin", "protocol", "request_id")

    def __init__(self, protocol: "ClaimingProtocol", data: bytes, request_id: bytes, of_origin: bytes) -> None:
        self.protocol = protocol
        self.data = data
        self.request_id = request_id
        self.of_origin = of_origin
        self.awaited: asyncio.Future[tuple[Sale, Joined]] | None = None

    def joined(self, joined: Joined, reply: ClaimReply | None) -> None:
        if self.awaited is None:
            self.protocol.joined(self, joined, reply)
        elif not self.awaited.done():
            self.awaited.set_result((self.sale, joined))


class ClaimingProtocol(GuardedProtocol):
    # What every claim looks up, also of the classes above: an object of so many attributes finds others more slowly.
    __slots__ = (
        "_address",
        "_answer_to_send",
        "_claims",
        "_origins",
        "_phase",
        "_plain_request",
        "_press",
        "_read_by",
        "_read_plain_claim",
        "_turn",
        "cycle",
        "descriptor",
        "flow",
        "keep_alive_s",
        "loop",
        "server_state",
        "transport",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._claims: ClaimRoute = self.application.claims
        self._joins: JoinRoute = self.application.joins
        self._turn: TurnBuffer = self.application.turn
        self._origins: CrossOrigin | None = self.application.origins
        self._read_plain_claim = self.application.read_plain_claim
        self._plain_request = (PLAIN if self._origins is None else PLAIN_WITH_ORIGIN).read
        self.descriptor = -1
        self._answer_to_send = b""
        self._address: str | None = None  # for all claims on this connection, unless a proxy opened it
        # the claim on its way, if nothing else has happened on this connection since
        self._press: _Press | _Join | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        if connection is not None and transport.get_extra_info("sslcontext") is None:
            self.descriptor = connection.fileno()

    def data_received(self, data: bytes) -> None:
        if self._answer_to_send:
            self.send()
        if self._press is not None:
            self._make_ordinary(self._press)
        elif self.is_quiet():
            said = self._read_plain_claim(data)
            if said is not None and self._begin_plain(data, said):
                return
            plain = self._plain_request(data)
            if plain is not None and self._begin(data, *plain):
                return
        super().data_received(data)

    def _begin_plain(self, data: bytes, said: PlainClaim) -> bool:
        """Returns False if the claim has to be read part by part."""
        named, origin = said[-2:]
        of_origin = b"" if self._origins is None else self._origins.lines(origin)
        press = self._press = _Press(self, data, request_id(named), of_origin)
        self._read_by = None  # before it is begun: who cannot be let in is answered at once, with the next deadline
        try:
            address = self._limited_address(data)
            begun = self._claims.begin_plain(said, address, press)
        except Exception as error:
            begun = self._problem(error, data, press)
        if begun is True:
            return True
        if not begun:
            self._press = None
            return False
        self._write_plain(begun, press)
        self._turn.add(self)
        return True

    def _problem(self, error: Exception, data: bytes, press: "_Press") -> ClaimReply:
        self._claims.note(error, self.peer(), _forwarded(data))
        return problem_reply(error, press.request_id)

    def _begin(self, data: bytes, sale_id: bytes, what: bytes, headers: dict[bytes, bytes], body: bytes) -> bool:
        of_origin = b"" if self._origins is None else self._origins.lines(headers.get(ORIGIN))
        named = request_id(headers.get(HEADER))
        if what == ENTRIES:
            join = _Join(self, data, named, of_origin)
            return self._begin_join(join, sale_id.decode(), headers, body)
        press = self._press = _Press(self, data, named, of_origin)
        self._read_by = None
        try:
            address = self._limited_address(data)
            begun = self._claims.begin(sale_id.decode(), address, headers, body, press)
        except Exception as error:
            begun = self._problem(error, data, press)
        if begun is True:
            return True
        if begun is False:
            self._press = None
            return False
        self._write_plain(begun, press)
        self._turn.add(self)
        return True

    def _begin_join(self, join: _Join, sale_id: str, headers: dict[bytes, bytes], body: bytes) -> bool:
        if not self._joins.begin(sale_id, self._counted_address(join.data), headers, body, join):
            return False
        self._press, self._read_by = join, None
        return True

    def _limited_address(self, data: bytes) -> str:
        return self._counted_address(data) if self._claims.limits_addresses else ""

    def _counted_address(self, data: bytes) -> str:
        if self._address is not None:
            return self._address
        peer, addresses = self.peer(), self._claims.addresses
        if addresses.trusts(peer):
            return addresses.counted_again(peer, _forwarded(data))
        self._address = addresses.counted(peer, ())
        return self._address

    def _write_plain(self, reply: ClaimReply, press: _Press | _Join) -> None:
        self._press = None
        head = self.begin_answer(reply.status)
        self._answer_to_send = b"".join(
            (head, reply.headers, press.of_origin, _NAMED, press.request_id, _END, reply.body)
        )
        self._read_by = self.loop.time() + self.keep_alive_s

    def send(self) -> None:
        if self._answer_to_send and not self.transport.is_closing():
            self.transport.write(self._answer_to_send)
        self._answer_to_send = b""

    def take_answer(self) -> bytes:
        if self.descriptor < 0 or self.transport.is_closing() or self.transport.get_write_buffer_size():
            self.send()  # whatever was written before goes first
        answer, self._answer_to_send = self._answer_to_send, b""
        return answer

    def not_sent_whole(self, answer: bytes, sent: int) -> None:
        self.transport.write(answer[max(sent, 0) :])  # which notices if the connection is broken

    def break_off(self) -> None:
        self.transport.abort()

    def decided(self, press: _Press, sale: Sale, answer: Answer) -> None:
        if self._press is not press:
            return  # the client is gone
        lines = press.of_origin + _NAMED + press.request_id
        try:
            whole = self._claims.admitted(self.begin_answer, sale, answer, lines)
            reply = None if whole is not None else self._claims.reply(press.claim, sale, answer)
        except Exception as error:  # others of the same batch still wait for their answers
            whole, reply = None, problem_reply(error, press.request_id)
        if whole is not None:
            self._press = None
            self._read_by = self.loop.time() + self.keep_alive_s
            self._answer_to_send = whole
            self._turn.add(self)
            return
        if reply is None:  # looking up or awaiting an order takes a task
            self._make_ordinary(press)
            press.decided(sale, answer)
        else:
            self._write_plain(reply, press)
            self._turn.add(self)

    def joined(self, join: _Join, joined: Joined, reply: ClaimReply | None) -> None:
        if self._press is not join:
            return  # the client is gone
        if reply is None:
            self._make_ordinary(join)
            join.joined(joined, None)
        else:
            self._write_plain(reply, join)
            self._turn.add(self)

    def _make_ordinary(self, press: _Press | _Join) -> None:
        self._press = None
        press.awaited = self.loop.create_future()
        super().data_received(press.data)
        self.scope_of_request()[BEGUN] = press.awaited  # its task has not run yet

    def is_answering(self) -> bool:
        return self._press is not None or super().is_answering()

    def shutdown(self) -> None:
        self.send()
        if self._press is not None:
            self._make_ordinary(self._press)
        super().shutdown()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """A client that has closed its side may still wait for the answer to its claim, or for its place in a line.
        That comes soon, because it no longer waits for the ledger. Streams and long polls end as before."""
        self.send()
        if self._press is not None:
            self._make_ordinary(self._press)
        return self.answer_after_end(_is_awaited, CLOSED) or super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._press, self._answer_to_send = None, b""
        super().connection_lost(exc)
