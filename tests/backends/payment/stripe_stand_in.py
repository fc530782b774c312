"""Does what stripe-mock does not: it remembers sessions, refunds and idempotency keys (with its answers, also if they
were no), and can be in trouble. stripe-mock checks what requests look like."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

import stripe

from seckill.payment import Notice
from seckill.settings import Secret, Settings
from tests.backends.payment.stand_in import Asked, Said, StandIn

KEY = "sk_test_51SeckillStandIn0000000000"
SECRET, OLD_SECRET = "whsec_newnewnewnewnewnewnewnewnew", "whsec_oldoldoldoldoldoldoldoldold"
_OWN = {"ISK": 100, "UGX": 100}


class StripeStandIn(StandIn):
    def __init__(self) -> None:
        super().__init__()
        self.replies: dict[str, tuple[bytes, Said]] = {}  # by idempotency key
        self.made: dict[str, dict[str, Any]] = {}
        self.sessions: dict[str, dict[str, Any]] = {}
        self.status = "succeeded"

    def settings(self, **changes: Any) -> Settings:
        given: dict[str, Any] = {
            "payment_provider": "stripe",
            "public_url": "https://sale.example.com",
            "stripe_key": Secret(KEY),
            "stripe_webhook_secrets": (Secret(OLD_SECRET), Secret(SECRET)),
            "stripe_url": self.url,
        }
        return Settings(**given | changes)

    def notify(self, notice: Notice, now_s: float) -> tuple[Mapping[str, str], bytes] | None:
        return self.sent("checkout.session.completed", session_of(notice), now_s)

    def sent(
        self, type_: str, session: Mapping[str, Any], now_s: float, secret: str = SECRET
    ) -> tuple[Mapping[str, str], bytes]:
        event = {"id": "evt_1", "object": "event", "type": type_, "data": {"object": session}}
        body = json.dumps(event)
        header = stripe.WebhookSignature.generate_signature_header(body, secret, int(now_s))
        return {"Stripe-Signature": header, "Content-Type": "application/json"}, body.encode()

    def refunds(self) -> int:
        return len(self.made)

    def forget_keys(self) -> None:
        """Forgets as Stripe does after a day."""
        self.replies.clear()

    def answer(self, asked: Asked) -> Said:
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        key = asked.headers.get("idempotency-key", "") if asked.method == "POST" else ""
        if key in self.replies:
            body, said = self.replies[key]
            return said if body == asked.body else _no(400, "idempotency_error", "another request with the same key")
        path, _, query = asked.target.partition("?")
        form = {name: values[0] for name, values in parse_qs(asked.body.decode() or query).items()}
        said = self._does(asked.method, path, form)
        if key and said.status < 500:
            self.replies[key] = (asked.body, said)
        return said

    def _does(self, method: str, path: str, form: Mapping[str, str]) -> Said:
        if (method, path) == ("POST", "/v1/checkout/sessions"):
            name = f"cs_test_{len(self.sessions) + 1}"
            cents = int(form["line_items[0][price_data][unit_amount]"])
            order_id = form["metadata[seckill_order]"]
            currency = form["line_items[0][price_data][currency]"]
            self.sessions[name] = {
                **session_of(Notice(ref="pi_1", order_id=order_id, amount_cents=cents, currency=currency.upper())),
                "id": name,
                "url": f"https://checkout.stripe.com/c/pay/{name}",
                "status": "open",
                "payment_status": "unpaid",
                "amount_total": cents,
                "form": dict(form),
            }
            return _yes(self.sessions[name])
        if path.startswith("/v1/checkout/sessions/"):
            name, _, verb = path.removeprefix("/v1/checkout/sessions/").partition("/")
            session = self.sessions.get(name)
            if session is None:
                return _no(404, "invalid_request_error", "No such checkout session")
            if verb == "expire":
                if session["status"] != "open":
                    return _no(400, "invalid_request_error", "Only sessions with status open can be expired")
                session["status"] = "expired"
            return _yes(session)
        if (method, path) == ("POST", "/v1/refunds"):
            if self.kind == "refusing":
                return _no(400, "invalid_request_error", "Insufficient funds in your balance to refund this amount.")
            name = f"re_{len(self.made) + 1}"
            metadata = {part.removeprefix("metadata[").rstrip("]"): form[part] for part in form if "metadata[" in part}
            self.made[name] = {
                "id": name,
                "object": "refund",
                "status": self.status,
                "amount": int(form["amount"]),
                "payment_intent": form["payment_intent"],
                "metadata": metadata,
            }
            return _yes(self.made[name])
        if (method, path) == ("GET", "/v1/refunds"):
            found = [each for each in self.made.values() if each["payment_intent"] == form["payment_intent"]]
            return _yes({"object": "list", "url": path, "has_more": False, "data": found})
        assert path == "/v1/balance", path
        return _yes({"object": "balance", "available": []})


def session_of(notice: Notice) -> dict[str, Any]:
    amount = notice.amount_cents * _OWN.get(notice.currency, 1)
    return {
        "id": "cs_test_0",
        "object": "checkout.session",
        "payment_status": "paid",
        "amount_total": amount,
        "currency": notice.currency.lower(),
        "payment_intent": notice.ref,
        "metadata": {"seckill_order": notice.order_id},
    }


def _yes(facts: Mapping[str, Any]) -> Said:
    return Said(200, json.dumps(facts).encode(), {"Content-Type": "application/json"})


def _no(status: int, type_: str, message: str) -> Said:
    body = json.dumps({"error": {"type": type_, "message": message}}).encode()
    return Said(status, body, {"Content-Type": "application/json"})
