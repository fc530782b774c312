"""What this installation runs on: its servers and its settings."""

import dataclasses
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from seckill import __version__
from seckill.settings import TABLE, Setting, Settings, shown
from seckill.web import schemas
from seckill.web.context import context
from seckill.web.responses import json_response
from seckill.web.schemas import rfc3339

# The addresses of the stores, of which an operator wants to know which server and database it is.
_STORES = ("redis_url", "database_url", "broker_url")


async def show_system(request: Request) -> Response:
    ctx = context(request)
    servers = await ctx.servers.look()
    return json_response(
        schemas.System(
            server_time=rfc3339(ctx.sale_cache.now_ms()),
            version=__version__,
            rehearsal=ctx.settings.rehearsal,
            servers=[schemas.ServerLook(**dataclasses.asdict(each)) for each in servers],
            settings=[
                schemas.SettingValue(
                    variable=setting.variable,
                    value=_value(setting, ctx.settings),
                    default=setting.default,
                    unit=setting.unit,
                )
                for setting in TABLE
            ],
        )
    )


def _value(setting: Setting, settings: Settings) -> str:
    """Everyone with access to the console sees this. Some services give out addresses whose path is a password, so
    paths stay here."""
    text = shown(setting, settings)
    if not setting.name.endswith("_url") or setting.name in _STORES or text == setting.default:
        return text
    parts = urlsplit(text)
    cut = parts.path.strip("/") or parts.query
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/…" if cut else text
