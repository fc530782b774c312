"""`POST /v1/sales/{id}/pass`: returns a challenge and, once that is met, a pass."""

import time

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.outcome import Outcome
from seckill.domain.proof_of_work import ALGORITHM, WorkChallenge, WorkSolution
from seckill.domain.sale import Sale
from seckill.engine.door.pass_desk import Answer, CheckChallenge, CheckResponse, Issued, NoPass
from seckill.ports.door import Applicant
from seckill.web.context import Context, context
from seckill.web.door.door_schemas import NewPass, Pass, PassChallenge
from seckill.web.problems import HttpProblem, address_limited, invalid
from seckill.web.requests.request_body import decode, read_body
from seckill.web.responses import json_response
from seckill.web.schemas import rfc3339

AGENT_LENGTH_MAX = 400

_new_pass = msgspec.json.Decoder(NewPass)
_SENTENCES = {
    NoPass.WRONG: "is not right",
    NoPass.EXPIRED: "came too late: ask for another challenge",
    NoPass.OTHERS: "belongs to another buyer or another round",
}


async def ask_for_pass(request: Request) -> Response:
    ctx = context(request)
    buyer = ctx.require_token(request)
    sale = await sale_meant(ctx, request.path_params["sale_id"])
    ctx.door.refuse_blocked(buyer.user)
    early_ms = ctx.door.invited(sale, buyer)
    asked = decode(await read_body(request.receive), _new_pass)
    address = ctx.counted_address(request)
    if wait_s := ctx.pass_rate.wait_s(address, time.monotonic()):
        raise address_limited(wait_s)
    applicant = applicant_of(ctx, request, sale, buyer.user)
    given = await ctx.passes.ask(sale, early_ms, applicant, address, _answer(asked))
    if isinstance(given, Issued):
        return json_response(Pass(given.text, rfc3339(1000 * given.ends_s)), 201)
    if isinstance(given, WorkChallenge):
        return json_response(_work(given))
    if isinstance(given, CheckChallenge):
        return json_response(PassChallenge(kind="check", ticket=given.ticket, site_key=ctx.settings.check_site_key))
    raise _refusal(ctx, sale, early_ms, given, _field_at_fault(asked, given))


def _field_at_fault(asked: NewPass, given: NoPass) -> str:
    """Of a captcha's answer, it is the ticket that belongs to a buyer and a round."""
    if asked.solution is not None:
        return "solution"
    return "ticket" if given is NoPass.OTHERS else "response"


def applicant_of(ctx: Context, request: Request, sale: Sale, user: str) -> Applicant:
    """Describes the buyer for the risk hook."""
    return Applicant(
        buyer=user,
        sale_id=ctx.sale_cache.public_id(sale),
        round=str(sale.round.id),
        address=ctx.client_of(request),
        agent=request.headers.get("user-agent", "")[:AGENT_LENGTH_MAX],
    )


async def sale_meant(ctx: Context, public_id: str) -> Sale:
    """Returns the sale with the round that is on or to come: a buyer who asks just after a round wants to press in the
    next."""
    sale = await ctx.sale_cache.find(public_id)
    if sale is None:
        raise HttpProblem.of(Outcome.UNKNOWN_SALE)
    if ctx.sale_cache.now_ms() >= sale.round.ends_ms:
        return ctx.sale_cache.following(sale) or sale
    return sale


def _answer(asked: NewPass) -> Answer | None:
    if asked.solution is not None:
        solution = asked.solution
        return WorkSolution(
            challenge=solution.challenge, salt=solution.salt, signature=solution.signature, number=solution.number
        )
    if asked.response is not None:
        return CheckResponse(response=asked.response, ticket=asked.ticket)
    return None


def _work(given: WorkChallenge) -> PassChallenge:
    return PassChallenge(
        kind="work",
        algorithm=ALGORITHM,
        challenge=given.challenge,
        salt=given.salt,
        signature=given.signature,
        maxnumber=given.maxnumber,
        expires_at=rfc3339(1000 * given.ends_s),
    )


def _refusal(ctx: Context, sale: Sale, early_ms: int, given: NoPass, field: str) -> HttpProblem:
    match given:
        case NoPass.NOT_NEEDED:
            return HttpProblem(409, "no_pass_needed", "This sale needs no pass.")
        case NoPass.TOO_EARLY:
            return HttpProblem.of(
                Outcome.NOT_STARTED,
                "It is too early for a pass.",
                begins_at=rfc3339(sale.round.begins_ms - early_ms),
                opens_at=rfc3339(ctx.passes.opens_ms(sale, early_ms)),
            )
        case NoPass.OVER:
            return HttpProblem.of(Outcome.ENDED)
        case NoPass.DENIED:
            return HttpProblem(403, "pass_denied", "There is no pass for you.")
        case NoPass.AWAY:
            return HttpProblem.of(Outcome.NOT_READY, "The check cannot be made now; please try again.")
        case _:
            return invalid(field, _SENTENCES[given])
