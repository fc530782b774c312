"""The role that answers over HTTP."""

import socket
from typing import Annotated

from cyclopts import Parameter

from seckill.cli.async_command import run
from seckill.cli.parameters import OptionalWhole, whole
from seckill.cli.role_settings import production
from seckill.local.cpu_precedence import give_way
from seckill.loops import Stop
from seckill.operations.metrics_port import metrics_port
from seckill.operations.role_health import Vitals, can_sell
from seckill.web.connections.listening_socket import bind
from seckill.web.server import serve


def api(
    *,
    host: str | None = None,
    port: OptionalWhole = None,
    fd: Annotated[int | None, Parameter(show=False, converter=whole)] = None,
) -> None:
    """Answer buyers and operators over HTTP.

    Parameters
    ----------
    host
        Address to listen on; 0.0.0.0 for all.
    port
        Port to listen on; 0 takes any free one.
    fd
        A socket that already listens, from the process that started this one.
    """
    settings = production("api", host, port)
    if fd is None:
        listener = bind(settings.host, settings.port)
    else:
        listener = socket.socket(fileno=fd)
        give_way()  # to the worker and the servers on this machine

    vitals = Vitals("api", enough=can_sell)

    async def main(stop: Stop) -> None:
        async with vitals.beating():
            await serve(settings, listener, stop, vitals=vitals)

    with metrics_port(settings, vitals):
        run(main, settings)
