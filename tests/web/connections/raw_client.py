"""A client that sends whatever bytes it is told to."""

import contextlib
import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from tests.patience import PATIENCE_S


def eventually(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/problem+json"
        assert self.headers["connection"] == "close"
        value: dict[str, Any] = json.loads(self.body)
        assert value["status"] == self.status
        return value


class Client:
    def __init__(self, port: int) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE_S)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def drip(self, data: bytes, every_s: float = 0.02) -> float:
        """Sends byte by byte until the server has something to say; returns how long that took."""
        began = time.monotonic()
        self.socket.settimeout(every_s)
        for byte in data:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.socket.sendall(bytes([byte]))
            with contextlib.suppress(TimeoutError):
                with contextlib.suppress(ConnectionResetError):  # that is its last word, too
                    self.socket.recv(1, socket.MSG_PEEK)
                break
        else:
            raise AssertionError("the server took it all")
        self.socket.settimeout(PATIENCE_S)
        return time.monotonic() - began

    def sends_until_cut(self, data: bytes) -> bool:
        """Never reads, and sends again and again whatever the server takes."""
        self.socket.settimeout(0.05)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            with contextlib.suppress(TimeoutError):
                try:
                    self.socket.sendall(data)
                except ConnectionError:
                    return True
        return False

    def sips(self, size: int, pause_s: float) -> bool:
        """Reads so much, if there is so much, and pauses."""
        self.socket.settimeout(0.01)
        with contextlib.suppress(TimeoutError, ConnectionResetError):
            while size > 0 and (part := self.socket.recv(size)):
                size -= len(part)
        time.sleep(pause_s)
        return True

    def response(self) -> Response:
        status = int(self.file.readline().split()[1])
        headers: dict[str, str] = {}
        while line := self.file.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        if "content-length" in headers:
            return Response(status, headers, self.file.read(int(headers["content-length"])))
        body = b""
        while size := int(self.file.readline(), 16):
            body += self.file.read(size + 2)[:-2]
        self.file.readline()
        return Response(status, headers, body)

    def is_closed(self) -> bool:
        """Waits for the end of the connection, with nothing more before it."""
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True
