"""Requests as bytes: good beginnings, and requests that are refused."""

GET = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
HEAD = b"GET /hello HTTP/1.1\r\nHost: a\r\n"
POST = b"POST /echo HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"

# Name: request, status, code. The limits are those of `guarded.SHORT`.
REFUSED: dict[str, tuple[bytes, int, str]] = {
    "long url": (b"GET /" + b"x" * 1000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414, "uri_too_long"),
    "endless url": (b"GET /" + b"x" * 100_000, 414, "uri_too_long"),
    "large header": (HEAD + b"X-Large: " + b"x" * 2000 + b"\r\n\r\n", 431, "headers_too_large"),
    "endless header": (HEAD + b"X-Large: " + b"x" * 400_000, 431, "headers_too_large"),
    "endless header name": (HEAD + b"x" * 400_000, 431, "headers_too_large"),
    "large headers": (
        HEAD + b"".join(b"X-%d: %s\r\n" % (n, b"x" * 150) for n in range(15)) + b"\r\n",
        431,
        "headers_too_large",
    ),
    "many headers": (HEAD + b"X: y\r\n" * 30 + b"\r\n", 431, "headers_too_large"),
    "large length": (POST + b"Content-Length: 5001\r\n\r\n", 413, "too_large"),
    "huge length": (POST + b"Content-Length: 18446744073709551615\r\n\r\n", 413, "too_large"),
    "length beyond counting": (POST + b"Content-Length: 1" + b"0" * 30 + b"\r\n\r\n", 400, "bad_request"),
    "large and continue": (POST + b"Expect: 100-continue\r\nContent-Length: 5001\r\n\r\n", 413, "too_large"),
    "large chunked": (CHUNKED + b"2710\r\n" + b"x" * 10_000, 413, "too_large"),
    "endless chunks": (CHUNKED + b"1f4\r\n%s\r\n" % (b"x" * 500) * 1000, 413, "too_large"),
    "endless extension": (CHUNKED + b"1;" + b"x" * 600_000, 413, "too_large"),
    "endless trailer": (CHUNKED + b"0\r\nX: " + b"x" * 600_000, 413, "too_large"),
    "many trailers": (CHUNKED + b"0\r\n" + b"X: y\r\n" * 30, 431, "headers_too_large"),
    "length and encoding": (
        POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "bad_request",
    ),
    "encoding and length": (
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        400,
        "bad_request",
    ),
    "two lengths": (POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400, "bad_request"),
    "listed lengths": (POST + b"Content-Length: 3, 3\r\n\r\nabc", 400, "bad_request"),
    "negative length": (POST + b"Content-Length: -3\r\n\r\nabc", 400, "bad_request"),
    "other encoding": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400, "bad_request"),
    "odd encoding": (POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400, "bad_request"),
    "chunks in 1.0": (CHUNKED.replace(b"1.1", b"1.0") + b"0\r\n\r\n", 400, "bad_request"),
    "bad chunk": (CHUNKED + b"xyz\r\n", 400, "bad_request"),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400, "bad_request"),
    "two hosts": (HEAD + b"Host: b\r\n\r\n", 400, "bad_request"),
    "http 0.9": (b"GET /hello\r\n\r\n", 400, "bad_request"),
    "http 0.9 named": (b"GET /hello HTTP/0.9\r\n\r\n", 400, "bad_request"),
    "http 2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "bad_request"),
    "http 2.0": (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 400, "bad_request"),
    "bare line feeds": (b"GET /hello HTTP/1.1\nHost: a\n\n", 400, "bad_request"),
    "folded header": (HEAD + b"X: y\r\n z\r\n\r\n", 400, "bad_request"),
    "space before colon": (HEAD + b"Content-Length : 3\r\n\r\nabc", 400, "bad_request"),
    "zero in header": (HEAD + b"X: a\x00b\r\n\r\n", 400, "bad_request"),
    "target not ascii": (b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request"),
    "connect": (b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request"),
    "tls": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "bad_request"),
    "upgrade with body": (
        POST + b"Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 3\r\n\r\nabc",
        400,
        "bad_request",
    ),
}
