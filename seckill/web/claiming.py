"""The short way of a claim: from the parsed request to the gate and back, without a task and an ASGI conversation.

Most claims have nothing unusual about them: the whole body is there, the connection stays open, the sale is known, the
buyer has not asked before. These are answered from here, with one write to the socket. Whatever is unusual goes on as
an ASGI request, with the same answers. It halves what a claim costs an API process (figures in docs/why.md).
"""

import asyncio
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from seckill.domain import Answer, Sale
from seckill.web.claim import COUNTED, ClaimRoute, Reply, problem_reply
from seckill.web.guard import GuardedProtocol


class ClaimingProtocol(GuardedProtocol):
    """uvicorn makes a cycle for each request, in order, and starts it here. That of a claim is answered without being
    run, so everything about connections, pipelines and draining stays as it is."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._claims: ClaimRoute = self.app.claims
        self._without_body: Any = None  # the cycle of a claim whose body has not arrived yet

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        # A client that does not read must be waited for, which only a task can do.
        unusual = cycle.waiting_for_100_continue or self.flow.write_paused
        if unusual or ClaimRoute.sale_in(cycle.scope) is None:
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
        scope = cycle.scope
        sale_id = ClaimRoute.sale_in(scope)
        assert sale_id is not None
        try:
            begun = self._claims.begin(sale_id, dict(scope["headers"]), bytes(cycle.body))
        except Exception as error:
            self._write(cycle, problem_reply(error))
            return
        if begun is None:
            super()._start_asgi_task(cycle, self.app)
        elif isinstance(begun, Reply):
            self._write(cycle, begun)
        else:
            sale, answer = begun
            answer.add_done_callback(partial(self._finish, cycle, sale))

    def _finish(self, cycle: Any, sale: Sale, answer: asyncio.Future[Answer]) -> None:
        try:
            reply = self._claims.finish(sale, answer.result())
        except Exception as error:
            reply = problem_reply(error)
        if reply is None:
            cycle.scope[COUNTED] = True
            super()._start_asgi_task(cycle, self.app)  # which asks the gate again, and gets the same answer
        else:
            self._write(cycle, reply)

    def _write(self, cycle: Any, reply: Reply) -> None:
        if cycle.disconnected or self.transport.is_closing():
            return
        head = [STATUS_LINE[reply.status]]
        for name, value in (*self.server_state.default_headers, *reply.headers):
            head += (name, b": ", value, b"\r\n")
        if not cycle.keep_alive:
            head.append(b"connection: close\r\n")
        head += (b"\r\n", reply.body)
        self.transport.write(b"".join(head))
        cycle.response_started = cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()
