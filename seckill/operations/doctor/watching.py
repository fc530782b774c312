"""Examines whether anyone would notice trouble: where metrics and health are served, and who gets alarms."""

import asyncio
import urllib.error
import urllib.request

from seckill import http_call
from seckill.operations.doctor.examination import Health
from seckill.settings import Settings

WITHIN_S = 3.0
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (where to ask, not where to listen)


async def examine_watching(settings: Settings, *, for_good: bool) -> Health:
    """`for_good`: the installation is not just a trial, so it should be watched."""
    advice = []
    if settings.metrics_port is None:
        says = "figures only at /metrics of the API, with the admin key"
        advice.append(
            "Without SECKILL_METRICS_PORT nobody can ask a worker or a keeper for its figures, or whether it is well."
        )
    else:
        host = _ANY.get(settings.metrics_host, settings.metrics_host)
        where = f"http://{f'[{host}]' if ':' in host else host}:{settings.metrics_port}"
        answer = await asyncio.to_thread(_ask, f"{where}/healthz")
        says = f"figures at {where}/metrics, {answer}"
    if not settings.alarm_url:
        advice.append("Without SECKILL_ALARM_URL alarms are only in the log.")
    return Health(says, advice=advice if for_good else [])


def _ask(url: str) -> str:
    try:
        with http_call.open_url(urllib.request.Request(url), WITHIN_S):  # noqa: S310 (made here)
            return "where a role is well"
    except urllib.error.HTTPError as error:
        with error:
            return "where something else answers" if error.code == 404 else f"where a role is not well ({error.code})"
    except http_call.FAILURES:
        return "where nothing answers on this machine now"
