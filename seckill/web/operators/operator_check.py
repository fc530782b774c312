"""Finds the operator by a key or a session, and refuses requests with a wrong key."""

from starlette.requests import Request

from seckill.domain.operator import ROOT, Operator, Role
from seckill.domain.outcome import Outcome
from seckill.engine.access.access_book import AccessBook, NoOperator
from seckill.web.buyers.buyer_tokens import bearer, looks_like_jwt
from seckill.web.incidents import Incident
from seckill.web.operators.admin_key import AdminKey
from seckill.web.operators.console_session import ConsoleSessions
from seckill.web.operators.guess_backoff import GuessBackoff
from seckill.web.problems import HttpProblem, suspicious
from seckill.web.requests.client_address import ClientAddresses

_ROOT = Operator(name=ROOT, role=Role.ADMIN)
_NO_LONGER = {
    NoOperator.EXPIRED: ("key_expired", "This key has expired: ask for a new one."),
    NoOperator.REVOKED: ("key_revoked", "This key was revoked."),
}


class OperatorCheck:
    """`sessions`: None if operators only have keys."""

    def __init__(
        self,
        admin_key: AdminKey,
        access_book: AccessBook,
        guesses: GuessBackoff,
        addresses: ClientAddresses,
        sessions: ConsoleSessions | None,
    ) -> None:
        self._admin_key = admin_key
        self._access_book = access_book
        self._guesses = guesses
        self._addresses = addresses
        self.sessions = sessions

    async def of(self, request: Request) -> Operator:
        """Finds the operator by a key or, for one who has signed in, by the session."""
        cookie = None if self.sessions is None else self.sessions.cookie_of(request)
        if self.sessions is None or cookie is None:
            return await self.by_key(request)
        return await self.sessions.operator(request, cookie)

    async def by_key(self, request: Request) -> Operator:
        token = bearer(request.headers.get("authorization", "").encode("latin-1"))
        if token is None:
            raise HttpProblem.of(
                Outcome.UNAUTHENTICATED, "This needs the admin key: Authorization: Bearer <admin key>."
            )
        client = self._client_of(request)
        if wait_s := self._guesses.wait_s(client):
            detail = f"Too many wrong keys came from your address; try again in {wait_s} s."
            raise suspicious(HttpProblem(429, "too_many_guesses", detail, retry_after_s=wait_s), Incident.ADMIN_GUESS)
        found = await self._operator(token)
        if isinstance(found, Operator):
            return found
        if found is NoOperator.NOT_KNOWN:
            raise HttpProblem.of(Outcome.NOT_READY, "Your key cannot be checked now; please try again.")
        if found is NoOperator.WRONG:
            self._guesses.wrong(client, token)
            raise suspicious(HttpProblem(403, "forbidden", "This needs the admin key."), Incident.ADMIN_GUESS)
        raise HttpProblem(403, *_NO_LONGER[found])

    async def _operator(self, token: str) -> Operator | NoOperator:
        return _ROOT if self._admin_key.matches(token) else await self._access_book.operator(token)

    async def is_operator(self, request: Request) -> bool:
        """For resources of which operators see more. Without a key, with a wrong one or with a buyer's token, one sees
        what everyone sees."""
        if self.sessions is not None and (cookie := self.sessions.cookie_of(request)) is not None:
            return await self.sessions.is_operator(request, cookie)
        token = bearer(request.headers.get("authorization", "").encode("latin-1"))
        if token is None or looks_like_jwt(token):
            return False
        client = self._client_of(request)
        if self._guesses.wait_s(client):
            return False
        found = await self._operator(token)
        if found is NoOperator.WRONG:
            self._guesses.wrong(client, token)
        return isinstance(found, Operator)

    def _client_of(self, request: Request) -> str:
        return self._addresses.of(request.client.host if request.client else "", request.scope["headers"])
