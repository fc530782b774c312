"""Erases a buyer's name everywhere."""

import sys

from seckill.cli.api_connection import call
from seckill.cli.output import print_json
from seckill.cli.parameters import AsJson, Url, Why
from seckill.client import requests


def erase(buyer: str, /, *, reason: Why = None, as_json: AsJson = False, url: Url = None) -> None:
    """Put a pseudonym in a buyer's place, everywhere and for good. Orders stay, for the books.

    Refused while something of theirs may still move: an order, a round that was over less than a day ago, money.
    docs/data.md says what it does not reach.

    Parameters
    ----------
    buyer
        The `sub` of their tokens.
    """
    done = call(requests.erase_buyer(buyer), url=url, why=reason)
    if as_json:
        print_json(done)
        return
    if not any(done.values()):
        sys.stdout.write("Nothing was held about them.\n")
        return
    counted = ", ".join(f"{count} {name}" for name, count in done.items())
    sys.stdout.write(f"Erased: {counted}.\n")
