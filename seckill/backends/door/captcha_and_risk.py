"""The services that are asked before a pass is issued, if the settings name them."""

from urllib.parse import urlencode

import msgspec
import structlog

from seckill.backends.door.json_service import JsonService
from seckill.ports.door import Applicant, HumanCheck, QuestionRefused, RiskDecision, RiskHook
from seckill.settings import Settings

log = structlog.get_logger()


class _Verified(msgspec.Struct):
    success: bool


class _Judged(msgspec.Struct):
    decision: RiskDecision


_verified = msgspec.json.Decoder(_Verified)
_judged = msgspec.json.Decoder(_Judged)


class SiteVerify:
    """The protocol that Turnstile, hCaptcha and reCAPTCHA share."""

    def __init__(self, service: JsonService, secret: str) -> None:
        self._service = service
        self._secret = secret

    async def passed(self, response: str, address: str) -> bool:
        fields = {"secret": self._secret, "response": response} | ({"remoteip": address} if address else {})
        body = urlencode(fields).encode()
        try:
            return (await self._service.ask(body, "application/x-www-form-urlencoded", _verified)).success
        except QuestionRefused as error:
            # Clients can send any text as a response. Nonsense must not get its sender the pass that every buyer gets
            # while the service is away.
            log.warning("the captcha service did not understand a response", reason=str(error))
            return False


class RiskService:
    def __init__(self, service: JsonService) -> None:
        self._service = service

    async def judge(self, applicant: Applicant) -> RiskDecision:
        body = msgspec.json.encode(applicant)
        return (await self._service.ask(body, "application/json", _judged)).decision


def open_check(settings: Settings) -> HumanCheck | None:
    if not settings.check_url or settings.check_secret is None:
        return None
    service = JsonService("SECKILL_CHECK_URL", settings.check_url, settings.check_within_s)
    return SiteVerify(service, settings.check_secret.reveal())


def open_risk(settings: Settings) -> RiskHook | None:
    if not settings.risk_url:
        return None
    return RiskService(JsonService("SECKILL_RISK_URL", settings.risk_url, settings.risk_within_s))
