"""Reading an answer of HTTP/1.1 as it comes in."""

import httptools


class ReplyTooLarge(Exception):
    pass


class HttpReply:
    """One answer, as the parser tells of it. `bytes_max`: of head and body together; what comes after is not read."""

    def __init__(self, bytes_max: int | None = None) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._left = bytes_max
        self._in_body = False
        self.status = 0
        self.headers: dict[str, str] = {}  # names in lower case
        self.body = bytearray()
        self.is_done = False
        self.keeps_alive = False

    def feed(self, data: bytes) -> None:
        """Raises ConnectionResetError if it ends too early, and ReplyTooLarge."""
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise ReplyTooLarge
        if data:
            self._parser.feed_data(data)
        elif self._in_body and not {"content-length", "transfer-encoding"} & set(self.headers):
            self.is_done = True  # it lasts until the connection is closed
        else:
            raise ConnectionResetError("the connection was closed")

    @property
    def has_head(self) -> bool:
        return self._in_body

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self.keeps_alive = self._parser.should_keep_alive()
        self._in_body = True

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        if self.status >= 200:
            self.is_done = True
        else:  # only that there will be an answer
            self.headers.clear()
            self._in_body = False
