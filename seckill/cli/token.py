"""Tokens for trying things out."""

import sys
import time
from typing import Annotated

from cyclopts import App, Parameter

from seckill.cli.running import environment, with_data_folder
from seckill.errors import SeckillError, StartError
from seckill.web.auth import mint_buyer_token

app = App(name="token", help="Tokens for trying things out.")


@app.command
def buyer(user: str, *, hours: Annotated[float, Parameter(help="How long it is valid.")] = 24) -> None:
    """Print a token for a buyer.

    Parameters
    ----------
    user
        The buyer's id: letters, digits and . _ @ | : + ~ = / -
    """
    settings = with_data_folder(environment())
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
    settings = with_data_folder(environment())
    if settings.admin_key is None:
        raise StartError("There is no admin key yet: set SECKILL_ADMIN_KEY, or run `seckill up` once.")
    sys.stdout.write(settings.admin_key.reveal() + "\n")
