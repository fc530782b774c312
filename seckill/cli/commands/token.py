"""Tokens for trying things out."""

import sys
import time
from typing import Annotated

from cyclopts import App, Parameter

from seckill.cli.command_settings import environment, with_own_secrets
from seckill.errors import SeckillError, StartError
from seckill.web.buyers.buyer_tokens import LIFETIME_S_MAX, mint_buyer_token

app = App(name="token", help="Tokens for trying things out.")

HOURS_MAX = LIFETIME_S_MAX // 3600


@app.command
def buyer(user: str, *, hours: Annotated[float, Parameter(help="How long it is valid.")] = 24) -> None:
    """Print a token for a buyer.

    Parameters
    ----------
    user
        The buyer's id: letters, digits and . _ @ | : + ~ = / -
    """
    if not 0 < hours <= HOURS_MAX:
        raise SeckillError(f"--hours must be above 0 and at most {HOURS_MAX}.")
    settings = with_own_secrets(environment())
    if settings.jwt_secret is None:
        raise StartError("There is no secret to sign with: set SECKILL_JWT_SECRET, or run `seckill up` once.")
    try:
        token = mint_buyer_token(
            settings.jwt_secret,
            user,
            lifetime_s=hours * 3600,
            issuer=settings.jwt_issuer,
            audience=settings.jwt_audience,
            now=time.time(),
        )
    except ValueError as error:
        raise SeckillError(str(error)) from error
    sys.stdout.write(token + "\n")


@app.command
def admin() -> None:
    """Print the admin key."""
    settings = with_own_secrets(environment())
    if settings.admin_key is None:
        raise StartError("There is no admin key yet: set SECKILL_ADMIN_KEY, or run `seckill up` once.")
    sys.stdout.write(settings.admin_key.reveal() + "\n")
