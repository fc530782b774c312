"""A provider of OpenID Connect on loopback, whose people sign in as soon as they are asked."""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

CLIENT, CLIENT_SECRET = "the-console", "p9:s/cret that+travels"


@dataclass
class Provider:
    """It says what the tests have it say. `codes`: of each code, the challenge and the address to go back to that came
    with the question for it, and the claims of its ID token."""

    url: str = ""
    key: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    kid: str = "first"
    alg: str = "ES256"
    facts: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, tuple[str, str, dict[str, Any]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def claims(self, asked: str, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        of_all = {"iss": self.url, "aud": CLIENT, "sub": "u-17", "iat": now, "exp": now + 300, "nonce": asked}
        changed = of_all | {"email": "lina@shop.example", "groups": ["staff", "sales"]} | changes
        return {name: value for name, value in changed.items() if value is not None}

    def signed(self, claims: dict[str, Any]) -> str:
        if self.alg == "none":
            return jwt.encode(claims, "", "none", headers={"kid": self.kid})
        if self.alg == "HS256":  # with public text as the secret
            public = json.dumps(self.keys()["keys"][0]).encode()
            return jwt.encode(claims, public, "HS256", headers={"kid": self.kid})
        return jwt.encode(claims, self.key, self.alg, headers={"kid": self.kid})

    def keys(self) -> dict[str, Any]:
        own = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [own | {"kid": self.kid, "use": "sig", "alg": "ES256"}]}

    def answer(self, path: str, form: dict[str, str], authorization: str) -> tuple[int, Any]:
        self.asked.append(path)
        match path:
            case "/.well-known/openid-configuration":
                names = {"authorization_endpoint": "authorize?prompt=login", "token_endpoint": "token", "jwks_uri": "k"}
                places = {name: f"{self.url}/{path}" for name, path in names.items()}
                return 200, {"issuer": self.url} | places | self.facts
            case "/k":
                return 200, self.keys()
            case "/token":
                return self.exchange(form, authorization)
        return 404, {}

    def signed_in(self, query: str, **claims: Any) -> str:
        """Signs a user in, and returns the address to which the browser goes back."""
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        assert (asked["response_type"], asked["client_id"], asked["code_challenge_method"]) == ("code", CLIENT, "S256")
        code = secrets.token_hex(8)
        self.codes[code] = (asked["code_challenge"], asked["redirect_uri"], self.claims(asked["nonce"], **claims))
        return f"{asked['redirect_uri']}?code={code}&state={asked['state']}"

    def exchange(self, form: dict[str, str], authorization: str) -> tuple[int, Any]:
        pair = "the-console:p9%3As%2Fcret%20that%2Btravels"
        if authorization != f"Basic {base64.b64encode(pair.encode()).decode()}":
            return 401, {"error": "invalid_client"}
        challenge, back, claims = self.codes.pop(form["code"], ("", "", {}))  # good once
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        proven = base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == challenge
        if not proven or form["redirect_uri"] != back:
            return 400, {"error": "invalid_grant"}
        return 200, {"token_type": "Bearer", "access_token": "nobody looks at it", "id_token": self.signed(claims)}


@contextmanager
def running_provider() -> Iterator[Provider]:
    made = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            form = {name: values[0] for name, values in parse_qs(self.rfile.read(size).decode()).items()}
            path, _, query = self.path.partition("?")
            status, content = made.answer(path, form, self.headers.get("Authorization", ""))
            body = json.dumps(content).encode()
            if path == "/authorize":
                self.send_response(303)
                self.send_header("Location", made.signed_in(query))
            else:
                self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 (the name is the library's)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
