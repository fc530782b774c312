"""Voucher codes, over the API."""

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from seckill.cli.api_connection import call
from seckill.cli.output import console, instant, print_json
from seckill.cli.parameters import AsJson, Url, Why
from seckill.client import requests
from seckill.errors import SeckillError

app = App(name="voucher", help="Upload, count, look up and redeem voucher codes.")

SaleId = Annotated[str, Parameter(help="The sale's id.")]
File = Annotated[Path, Parameter(help="A code on each line; - reads the standard input.", allow_leading_hyphen=True)]
ItemId = Annotated[str | None, Parameter(help="Only for this item.")]
Code = Annotated[str, Parameter(help="The code, as its buyer sees it.")]


@app.command
def upload(
    sale_id: SaleId,
    file: File,
    *,
    item: ItemId = None,
    reason: Why = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Upload codes for a sale, or for one item of it: all of them or none."""
    try:
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise SeckillError(f"{file} cannot be read ({error.strerror}).") from error
    counts = call(requests.upload_vouchers(sale_id, content, item_id=item), url=url, why=reason)
    if as_json:
        print_json(counts)
        return
    console().print(f"{counts['added']} codes added.")
    _print(counts)


@app.command
def count(sale_id: SaleId, *, as_json: AsJson = False, url: Url = None) -> None:
    """Count the codes that a sale has, and those that it lacks."""
    counts = call(requests.count_vouchers(sale_id), url=url)
    if as_json:
        print_json(counts)
    else:
        _print(counts)


def _print(counts: dict[str, Any]) -> None:
    console().print(
        f"{counts['codes']} codes: {counts['free']} free, {counts['given']} given, {counts['redeemed']} redeemed, "
        f"{counts['void']} void."
    )
    for item in counts.get("items", ()):
        told = f"{item['title']}: {item['free']} free of its own, {item['needed']} units may still be paid for."
        console().print(told, markup=False)
    if counts["missing"]:
        console().print(f"{counts['missing']} are missing: upload them, and the rounds that wait for them open.")


@app.command
def show(code: Code, *, as_json: AsJson = False, url: Url = None) -> None:
    """Show who has a code, and what has become of it."""
    _print_one(call(requests.voucher(code), url=url), as_json)


@app.command
def redeem(code: Code, *, reason: Why = None, as_json: AsJson = False, url: Url = None) -> None:
    """Redeem a code, once."""
    _print_one(call(requests.redeem_voucher(code), url=url, why=reason), as_json)


def _print_one(voucher: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(voucher)
        return
    when = "" if voucher["redeemed_at"] is None else f" at {instant(voucher['redeemed_at'])}"
    of = "" if voucher["order_id"] is None else f", order {voucher['order_id']} of {voucher['buyer']}"
    console().print(f"{voucher['state'].capitalize()}{when}{of}.", markup=False)
