"""The socket on which the API listens. It is separate from the server, because `seckill up` makes the socket and then
starts the server."""

import errno
import socket

from seckill.errors import StartError

# How many connections the kernel keeps waiting while all buyers arrive at once. It keeps no more than
# net.core.somaxconn, and a client that finds no place tries again a second later.
BACKLOG = 65_535


def bind(host: str, port: int) -> socket.socket:
    """Without SO_REUSEPORT: a port already in use is an error, not a port to share."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        remedy = "check --host"
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            remedy = "stop what uses it, or choose another with --port or SECKILL_PORT"
        raise StartError(f"Cannot listen on {host}:{port} ({error.strerror}): {remedy}.") from error
    listener.listen(BACKLOG)
    return listener
