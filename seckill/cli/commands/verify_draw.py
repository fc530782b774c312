"""Checks a draw. Anyone can do so: it takes no account and no trust in the server."""

import re
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import SplitResult, quote, urlencode, urlsplit

import msgspec
from cyclopts import Parameter
from rich.markup import escape

from seckill.cli.exit_codes import EXIT_BROKEN, EXIT_HOLDS
from seckill.cli.output import console, print_json
from seckill.cli.parameters import AsJson
from seckill.client import Client, ClientError
from seckill.client.draw_check import (
    ALGORITHM,
    BeaconOrigin,
    Draw,
    DrawVerdict,
    NoProof,
    Receipt,
    Witness,
    check,
    due_number,
)
from seckill.client.requests import Request
from seckill.errors import SeckillError

BYTES_MAX = 1 << 30  # of a file
ENTRIES_MAX = 10_000_000  # of a list, so that no server can fill this machine's memory
REPEAT_FOR_S = 30.0

_SALE = re.compile(r"^(.*?)(?:/v1)?/sales/([^/]+)(?:/draw(?:/entries)?)?/?$")

Target = Annotated[
    str,
    Parameter(help="A file with the answer of `GET /v1/sales/{id}/draw` and its entries, or the sale's address."),
]
ReceiptFile = Annotated[Path | None, Parameter(help="A file with your receipt: is your entry on the list?")]
Key = Annotated[str | None, Parameter(help="The key of receipts that you have noted before; the draw's, if not given.")]
AskBeacon = Annotated[bool, Parameter(help="Ask the source of the beacon for it.", negative=())]
Commitment = Annotated[str | None, Parameter(help="The commitment that you have noted before entries opened.")]
ListHash = Annotated[str | None, Parameter(help="The list's hash that you have noted before the seed was known.")]
Round = Annotated[
    str | None, Parameter(name="--round", help="Of a sale that repeats; the present round, if not given.")
]


class DrawDocument(msgspec.Struct):
    """The part of the published draw that a check needs. Whatever else is published is ignored."""

    commitment: str
    algorithm: str = ALGORITHM
    list_hash: str | None = None
    seed: str | None = None
    beacon: str | None = None
    entries: list[str] | int | None = None
    closed_at: datetime | None = None
    listed_at: datetime | None = None
    round: str | None = None
    receipt_key: str | None = None
    beacon_source: BeaconOrigin | None = None
    beacon_round: int | None = None
    beacon_missed_at: datetime | None = None


class BeaconDocument(msgspec.Struct):
    round: int
    randomness: str


class EntriesPage(msgspec.Struct):
    entries: list[str]
    next: int | None = None


class EntryDocument(msgspec.Struct):
    """An entry as its buyer was shown it."""

    receipt: str


def verify_draw(
    target: Target,
    *,
    receipt: ReceiptFile = None,
    commitment: Commitment = None,
    list_hash: ListHash = None,
    key: Key = None,
    ask_beacon: AskBeacon = False,
    round_: Round = None,
    as_json: AsJson = False,
) -> None:
    """Recompute a draw from what was published, without trusting the server that made it.

    Exit code 0: as drawn. 1: not; it says where. 2: could not tell. If it is as drawn, it says
    what that does not prove.
    """
    mine = None if receipt is None else _receipt_in(receipt)
    draw = _from_url(target, round_) if target.startswith(("http://", "https://")) else _from_file(Path(target))
    noted = Witness(
        commitment=_digest(commitment),
        list_hash=_digest(list_hash),
        receipt=mine,
        key=_digest(key, "key of receipts"),
        beacon=_asked_beacon(draw) if ask_beacon else None,
    )
    try:
        verdict = check(draw, noted)
    except NoProof as error:
        raise SeckillError(str(error)) from error
    _show(verdict, is_asked_for=mine is not None, as_json=as_json)
    sys.exit(EXIT_BROKEN if verdict.flaws else EXIT_HOLDS)


def _digest(text: str | None, kind: str = "SHA-256") -> str | None:
    if text is None:
        return None
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise SeckillError(f"{text} is not a {kind}: 64 hexadecimal digits.")
    return text.lower()


def _show(verdict: DrawVerdict, *, is_asked_for: bool, as_json: bool) -> None:
    if as_json:
        told = msgspec.to_builtins(verdict)
        print_json({"as_drawn": not verdict.flaws, **told})
        return
    output = console()
    if verdict.flaws:
        output.print(f"[red]NOT as drawn[/]  {verdict.entries} entries")
        for flaw in verdict.flaws:
            output.print(f"  [red]{flaw.code}[/]: {escape(flaw.says)}", soft_wrap=True)
        return
    output.print(f"[green]as drawn[/]  seed, list and all {verdict.entries} places are what was published")
    if is_asked_for:
        place = "came after the list was closed" if verdict.place is None else f"has place {verdict.place}"
        output.print(f"Your entry {place}.")
    output.print("What this does not prove:")
    for sentence in verdict.unproven:
        output.print(f"  {escape(sentence)}", soft_wrap=True)


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > BYTES_MAX:
            raise SeckillError(f"{path} is larger than {BYTES_MAX >> 20} MB, which no draw is.")
        return path.read_bytes()
    except OSError as error:
        raise SeckillError(f"{path} cannot be read ({error.strerror}).") from error


def _receipt_in(path: Path) -> Receipt:
    """Reads the receipt itself, or an entry that contains it."""
    content = _read(path).strip()
    try:
        text = msgspec.json.decode(content, type=EntryDocument).receipt if content[:1] == b"{" else content.decode()
        return Receipt.read(text)
    except (ValueError, UnicodeDecodeError) as error:  # msgspec's are among them
        raise SeckillError(f"{path} is not a receipt: {error}.") from error


def _from_file(path: Path) -> Draw:
    try:
        document = msgspec.json.decode(_read(path), type=DrawDocument)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SeckillError(f"{path} is not a draw: {error}.") from error
    if not isinstance(document.entries, list):
        raise SeckillError(f"{path} has no entries in it: save those of /draw/entries with it, or give the address.")
    return _drawn(document, document.entries)


def _from_url(address: str, round_: str | None) -> Draw:
    parts = _parts(address)
    found = _SALE.match(parts.path)
    if found is None:
        raise SeckillError(f"{address} is not the address of a sale: it ends in /sales/ and the sale's id.")
    prefix, sale_id = found.groups()
    path = f"/v1/sales/{sale_id}/draw"
    query = f"?round={quote(round_)}" if round_ else ""
    try:
        with Client(f"{parts.scheme}://{parts.netloc}{prefix}", repeat_for_s=REPEAT_FOR_S) as client:
            document = msgspec.convert(client.document(_get(path + query)), DrawDocument)
            entries = document.entries if isinstance(document.entries, list) else []
            if document.seed is not None and not isinstance(document.entries, list):
                for page in _pages(client, path, round_):
                    entries += page
                    if len(entries) > ENTRIES_MAX:
                        raise SeckillError(f"The list has more than {ENTRIES_MAX} entries.")
    except (ClientError, msgspec.ValidationError) as error:
        raise SeckillError(f"There is no draw to be read at {address}: {error}") from error
    return _drawn(document, entries)


def _parts(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
    except ValueError:  # its brackets cannot be
        parts = None
    if parts is None or not f"{parts.path}{parts.query}".isascii():
        raise SeckillError(f"{address} is not an address: its characters are those of RFC 3986.")
    return parts


def _pages(client: Client, path: str, round_: str | None) -> Iterator[list[str]]:
    after: int | None = 0
    while after is not None:
        query = urlencode({name: value for name, value in (("round", round_), ("after", after)) if value})
        page = msgspec.convert(client.document(_get(f"{path}/entries?{query}")), EntriesPage)
        yield page.entries
        after = page.next if page.entries else None


def _get(path: str) -> Request[Any]:
    return Request(method="GET", path=path, answer=object, for_anybody=True, repeatable=True)


def _asked_beacon(draw: Draw) -> str:
    """Asks the beacon's source for the value that the draw had to use."""
    if draw.source is None:
        raise SeckillError("This draw does not say where its beacon comes from, so there is no source to ask.")
    number = due_number(draw.source, draw.listed_ms)
    parts = _parts(draw.source.url.replace("{round}", str(number)))
    try:
        with Client(f"{parts.scheme}://{parts.netloc}", repeat_for_s=REPEAT_FOR_S) as client:
            path = f"{parts.path}?{parts.query}" if parts.query else parts.path
            found = msgspec.convert(client.document(_get(path)), BeaconDocument)
    except (ClientError, msgspec.ValidationError) as error:
        raise SeckillError(f"The beacon cannot be read at {parts.geturl()}: {error}") from error
    if found.round != number:
        raise SeckillError(f"{parts.geturl()} answers with number {found.round}.")
    return found.randomness


def _ms(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)


def _drawn(document: DrawDocument, entries: list[str]) -> Draw:
    if document.algorithm != ALGORITHM:
        raise SeckillError(f"The draw was made by {document.algorithm}, and this can check {ALGORITHM} only.")
    if document.seed is None or document.list_hash is None:
        raise SeckillError(f"Nothing is drawn yet. Note the commitment: {document.commitment}")
    return Draw(
        commitment=document.commitment,
        list_hash=document.list_hash,
        seed=document.seed,
        beacon=document.beacon or "",
        entries=entries,
        closed_ms=_ms(document.closed_at),
        listed_ms=_ms(document.listed_at),
        source=document.beacon_source,
        beacon_number=document.beacon_round,
        beacon_missed=document.beacon_missed_at is not None,
        round=document.round,
        receipt_key=document.receipt_key,
    )
