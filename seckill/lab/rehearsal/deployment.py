"""Looks at the deployment behind an address, and decides whether a rehearsal may be held there now."""

import asyncio
import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from seckill.client import AsyncClient, ClientError, Denied, NoAnswer, Refused
from seckill.client.connections import HttpTransport, Message
from seckill.client.documents import Sale
from seckill.client.requests import Request
from seckill.errors import StartError
from seckill.lab.bench.tokens import Tokens
from seckill.settings import Settings

# Marks the sale of a rehearsal, for us and for people and programs that read its orders.
MARK = "rehearsal"
ABOUT_TO_BEGIN = timedelta(minutes=15)
# The API lets each address sign in only a few times a second.
SIGN_INS_MAX = 2_000
SIGN_INS_AT_ONCE = 20
ASK_WITHIN_S = 10.0
# The audit compares every order there is, not just those of the rehearsal.
AUDITED_WITHIN_S = 600.0
NEEDS = (
    "A rehearsal needs the admin key (SECKILL_ADMIN_KEY) and the secret that signs buyers' tokens (SECKILL_JWT_SECRET) "
    "of the deployment, or a deployment in which anybody may sign in (SECKILL_DEMO_SIGN_IN)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    url: str
    version: str
    no_money_moves: bool  # its payment provider is the sandbox
    signs_anybody_in: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BuyersTokens:
    """Either a secret, with which any number of tokens can be made with the given claims, or a list of tokens."""

    secret: str = ""
    claims: dict[str, object] = field(default_factory=dict)
    given: Sequence[str] = ()


class OperatorSite:
    """An operator's view of the deployment."""

    def __init__(self, url: str, admin_key: str) -> None:
        self.url = url.rstrip("/")
        self.client = AsyncClient(self.url, admin_key, within_s=ASK_WITHIN_S, repeat_for_s=0)
        self._transport = HttpTransport(self.url)
        self._admin_key = admin_key

    async def close(self) -> None:
        await self.client.close()
        await self._transport.close()

    async def text(self, path: str, *, as_operator: bool = False, within_s: float = ASK_WITHIN_S) -> str | None:
        """Returns None if there is no good answer."""
        headers = {"Authorization": f"Bearer {self._admin_key}"} if as_operator else {}
        message = Message(method="GET", path=path, headers=headers, body=b"", repeatable=True)
        with contextlib.suppress(ClientError):
            reply = await self._transport.send(message, within_s)
            if reply.status == 200:
                return reply.body.decode(errors="replace")
        return None

    async def audit(self) -> str:
        """Returns the verdict on all orders."""
        patient = AsyncClient(
            self.url, self._admin_key, within_s=AUDITED_WITHIN_S, repeat_for_s=0, transport=self._transport
        )
        with contextlib.suppress(ClientError):
            return (await patient.audit(full=True)).verdict
        return "unknown"

    async def live(self) -> Any:
        return await self.client.document(Request(method="GET", path="/v1/admin/live", answer=object, repeatable=True))

    async def look(self) -> Deployment:
        """Raises StartError with a sentence for the user who gave the address."""
        try:
            await self.client.webhooks()  # which only operators may read
            told = await self.client.document(
                Request(method="GET", path="/version", answer=object, for_anybody=True, repeatable=True)
            )
        except Denied as error:
            raise StartError("The admin key is not the one of this deployment: set SECKILL_ADMIN_KEY.") from error
        except NoAnswer as error:
            raise StartError(f"Nothing answers at {self.url} ({error.reason}): start it, or mend --url.") from error
        except Refused as error:
            raise StartError(f"{self.url} is no seckill that can be used now ({error}).") from error
        page = await self.text("/") or ""
        is_test = isinstance(told, dict) and told.get("rehearsal") == "on"
        return Deployment(
            url=self.url,
            version=str(told.get("version", "")) if isinstance(told, dict) else "",
            # Asks for both signs, because a wrong yes would send buyers to a real till.
            no_money_moves=is_test and _fact(page, "sandbox") == "on",
            signs_anybody_in=_fact(page, "demo") == "on",
        )

    async def buyers_tokens(self, settings: Settings, deployment: Deployment, run: str, buyers: int) -> BuyersTokens:
        """Returns tokens that the deployment accepts, after trying one of them."""
        if settings.jwt_secret is not None:
            claims: dict[str, object] = {settings.jwt_groups_claim: [run]}
            claims |= {} if settings.jwt_issuer is None else {"iss": settings.jwt_issuer}
            claims |= {} if settings.jwt_audience is None else {"aud": settings.jwt_audience}
            tokens = BuyersTokens(secret=settings.jwt_secret.reveal(), claims=claims)
            first = Tokens(settings.jwt_secret, claims).of(f"{run}-0")
        elif deployment.signs_anybody_in:
            tokens = BuyersTokens(given=await self._signed_in(run, min(buyers, SIGN_INS_MAX)))
            first = tokens.given[0] if tokens.given else ""
        else:
            raise StartError(f"{NEEDS}.")
        try:
            await self.client.signed_in(first).orders(limit=1)
        except ClientError as error:
            raise StartError(f"The deployment does not accept our buyers' tokens ({error}) {NEEDS}.") from error
        return tokens

    async def _signed_in(self, run: str, many: int) -> list[str]:
        """Returns fewer tokens if the deployment does not let one address sign in so often."""
        asking = asyncio.Semaphore(SIGN_INS_AT_ONCE)
        enough = False

        async def sign_in(number: int) -> str:
            nonlocal enough
            async with asking:
                if enough:
                    return ""
                body = msgspec.json.encode({"name": f"{run}-{number}"})
                headers = {"Content-Type": "application/json"}
                message = Message(method="POST", path="/v1/demo/sign-in", headers=headers, body=body, repeatable=True)
                reply = await self._transport.send(message, ASK_WITHIN_S)
                if reply.status != 200:
                    enough = True
                    return ""
                return str(msgspec.json.decode(reply.body)["token"])

        return [token for token in await asyncio.gather(*map(sign_in, range(many))) if token]

    async def refuse_if_unsuitable(self, *, lasts_s: float, beside_sales: bool, with_webhooks: bool) -> None:
        """Raises StartError if a sale is on, or if webhooks would announce orders that are not real."""
        known = await self.client.sales()
        for sale in known.sales:
            if is_marked(sale) and sale.state != "ended":
                raise StartError(
                    f"Another rehearsal is on, or was cut off: wait until {sale.ends_at:%H:%M:%S} UTC, or "
                    f"`seckill sale close {sale.id}`."
                )
        if not beside_sales and (near := sales_near(known.sales, lasts_s)):
            raise StartError(f"{near}: rehearse at another time, or with --beside-sales if buyers may feel it.")
        told = [hook for hook in await self.client.webhooks() if hook.enabled and hook.sale_id is None]
        if told and not with_webhooks:
            raise StartError(
                f"The webhook {told[0].id} to {told[0].url} would be told of the rehearsal's orders: disable it "
                f"meanwhile, or give --with-webhooks if its receiver leaves out sales whose external_id begins with "
                f'"{MARK}-".'
            )

    async def hide_leftovers(self) -> int:
        """Hides the sales of rehearsals that were killed. Those have ended by themselves by now."""
        hidden = 0
        for sale in (await self.client.sales()).sales:
            if is_marked(sale) and sale.state == "ended" and sale.published is True:
                await self.client.change_sale(sale.id, {"published": False})
                hidden += 1
        return hidden


def is_marked(sale: Sale) -> bool:
    return isinstance(sale.external_id, str) and sale.external_id.startswith(f"{MARK}-")


def sales_near(sales: Sequence[Sale], lasts_s: float) -> str | None:
    """Describes a real sale that is on or begins soon. Returns None if there is none."""
    for sale in sales:
        if is_marked(sale) or sale.state == "ended" or sale.published is False:
            continue
        if sale.state != "scheduled":
            return f'The sale "{sale.title}" ({sale.id}) is {sale.state}'
        if _soon(sale.begins_at, sale.server_time, lasts_s):
            return f'The sale "{sale.title}" ({sale.id}) begins at {sale.begins_at:%H:%M:%S} UTC'
    return None


def _soon(begins_at: datetime, now: datetime, lasts_s: float) -> bool:
    return begins_at - now < max(ABOUT_TO_BEGIN, timedelta(seconds=2 * lasts_s))


def _fact(page: str, name: str) -> str | None:
    found = re.search(rf'<meta name="seckill-{name}" content="([^"]*)">', page)
    return found[1] if found else None
