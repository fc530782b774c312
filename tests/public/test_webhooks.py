"""The helper for receivers, against the convention's own library, both ways."""

import base64
import time
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from seckill.client import ClientError, WebhookNotGenuine, verify_webhook
from seckill.domain.webhook_signature import sign
from seckill.engine.webhooks.desk import new_secret

BODY = b'{"type":"order.paid","timestamp":"2026-11-20T02:00:01.204Z","data":{"order_id":"0H4X"}}'
SECRET = new_secret()
OTHER = new_secret()


def theirs(secret: str = SECRET, body: bytes = BODY, at_s: float | None = None) -> dict[str, str]:
    """Headers that their library makes."""
    at = datetime.fromtimestamp(time.time() if at_s is None else at_s, UTC)
    signature = Webhook(secret).sign("evt_1", at, body.decode())
    return {"Webhook-Id": "evt_1", "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signature}


def test_we_take_what_they_sign() -> None:
    event = verify_webhook(BODY, theirs(), SECRET)
    assert (event.id, event.type, event.data) == ("evt_1", "order.paid", {"order_id": "0H4X"})
    assert event.at == datetime(2026, 11, 20, 2, 0, 1, 204_000, UTC)


def test_they_take_what_we_sign() -> None:
    now_s = int(time.time())
    ours = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(now_s),
        "webhook-signature": sign([OTHER, SECRET], "evt_1", now_s, BODY),
    }
    for secret in (SECRET, OTHER):
        Webhook(secret).verify(BODY, ours)
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(BODY, ours)


def test_several_secrets_and_several_signatures() -> None:
    headers = theirs(OTHER)
    assert verify_webhook(BODY, headers, [SECRET, OTHER])
    headers["webhook-signature"] = f"v1a,abc v1,AAAA {headers['webhook-signature']}"
    assert verify_webhook(BODY, headers, OTHER)
    headers["webhook-signature"] = headers["webhook-signature"].replace("v1,", "v2,")
    with pytest.raises(WebhookNotGenuine, match="signature"):
        verify_webhook(BODY, headers, OTHER)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_header_that_is_missing(name: str) -> None:
    headers = {key.lower(): value for key, value in theirs().items()}
    del headers[name]
    with pytest.raises(WebhookNotGenuine, match=name):
        verify_webhook(BODY, headers, SECRET)


@pytest.mark.parametrize("change", ["body", "id", "timestamp", "secret"])
def test_whatever_is_changed_is_noticed(change: str) -> None:
    headers, body, secret = theirs(), BODY, SECRET
    if change == "body":
        body = BODY.replace(b"0H4X", b"0H4Y")
    if change == "id":
        headers["Webhook-Id"] = "evt_2"
    if change == "timestamp":
        headers["webhook-timestamp"] = str(int(headers["webhook-timestamp"]) + 1)
    if change == "secret":
        secret = OTHER
    with pytest.raises(WebhookNotGenuine, match="signature") as caught:
        verify_webhook(body, headers, secret)
    assert isinstance(caught.value, ClientError)


@pytest.mark.parametrize("away_s", [-301, 301])
def test_what_is_too_old_or_from_the_future_is_refused(away_s: int) -> None:
    now_s = time.time()
    headers = theirs(at_s=now_s + away_s)
    with pytest.raises(WebhookNotGenuine, match="300 s"):
        verify_webhook(BODY, headers, SECRET, now_s=now_s)
    assert verify_webhook(BODY, headers, SECRET, now_s=now_s, tolerance_s=400)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"type": 1}', b"\xff"])
def test_a_body_that_is_none_of_ours(body: bytes) -> None:
    now_s = int(time.time())
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(now_s),
        "webhook-signature": sign([SECRET], "evt_1", now_s, body),
    }
    with pytest.raises(WebhookNotGenuine, match="none of ours"):
        verify_webhook(body, headers, SECRET)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_!", "whsec_" + base64.b64encode(b"short").decode()])
def test_a_secret_that_cannot_be_one_is_the_receivers_mistake(secret: str) -> None:
    with pytest.raises(ValueError, match="secret"):
        verify_webhook(BODY, theirs(), secret)


def test_no_secret_lets_nothing_through() -> None:
    with pytest.raises(ValueError, match="secret"):
        verify_webhook(BODY, theirs(), [])
