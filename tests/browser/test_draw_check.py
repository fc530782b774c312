"""The check of a draw as the page makes it, held against the same draws as the command."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from playwright.async_api import Page

from tests.browser.visiting import Visit
from tests.cli.test_verify_draw import SHOP, signed, signed_with_others
from tests.draws import FLAWED, SOUND, drawn, hashed

CHECK = "([url, draw, noted]) => import(url).then((module) => module.check(draw, noted))"
READ = "([url, receipt, key, round]) => import(url).then((module) => module.readReceipt(receipt, key, round))"
HASH = "([url, texts]) => import(url).then((module) => texts.map(module.hex))"


async def module(page: Page, name: str) -> str:
    base = await page.evaluate("new URL('../app/', document.querySelector('script[src]').src).href")
    return f"{base}{name}"


async def checked(page: Page, draw: dict[str, Any], **noted: str) -> Any:
    return await page.evaluate(CHECK, [await module(page, "draw_check.js"), draw, noted])


async def test_hashes_are_those_of_the_standard(visit: Visit) -> None:
    """The texts have every length around the edges of one and two blocks, and some are not ASCII."""
    page = await visit.page()
    await page.goto(visit.stack.url)
    texts = [*("x" * length for length in range(130)), "秒杀" * 50, "y" * 100_000]
    assert await page.evaluate(HASH, [await module(page, "sha256.js"), texts]) == [hashed(text) for text in texts]


async def test_the_page_finds_what_the_command_finds(visit: Visit) -> None:
    page = await visit.page()
    await page.goto(visit.stack.url)
    for name, draw in SOUND.items():
        assert await checked(page, draw) == {"entries": len(draw["entries"]), "flaws": [], "place": None}, name
    for name, (draw, codes) in FLAWED.items():
        assert {flaw["code"] for flaw in (await checked(page, draw))["flaws"]} == codes, name


async def test_the_page_knows_a_receipt_from_a_forgery(visit: Visit) -> None:
    page = await visit.page()
    await page.goto(visit.stack.url)
    key = SHOP.public_key().public_bytes_raw().hex()
    true = signed("plum", 1_795_168_000_000)
    forged = signed("plum", 1_795_168_000_000, by=Ed25519PrivateKey.generate())
    earlier = true.replace("1795168", "1795167")
    shared = signed_with_others("plum", 1_795_168_000_000)
    said = [
        await page.evaluate(READ, [await module(page, "draw_check.js"), receipt, key, round_])
        for receipt, round_ in (
            (true, "7"),
            (true, "8"),
            (forged, "7"),
            (earlier, "7"),
            (shared, "7"),
            (shared.replace("plum", "pear"), "7"),
            (shared.rpartition("-")[0], "7"),
            ("plum.1.00ff", "7"),
            (None, "7"),
        )
    ]
    assert [each and each["isSigned"] for each in said] == [True, False, False, False, True, False, False, None, None]
    assert (said[0]["entryId"], said[0]["joinedMs"]) == ("plum", 1_795_168_000_000)


@pytest.mark.parametrize(
    ("noted", "codes", "place"),
    [
        ({"commitment": drawn()["commitment"], "list_hash": drawn()["list_hash"]}, [], None),
        ({"commitment": hashed("another")}, ["commitment"], None),
        ({"list_hash": hashed("another")}, ["noted_list"], None),
        ({"entry_id": "plum"}, [], drawn()["entries"].index("plum") + 1),
        ({"entry_id": "left out"}, ["dropped"], None),
    ],
)
async def test_what_was_noted_before_counts(
    visit: Visit, noted: dict[str, str], codes: list[str], place: int | None
) -> None:
    page = await visit.page()
    await page.goto(visit.stack.url)
    found = await checked(page, drawn(), **noted)
    assert [flaw["code"] for flaw in found["flaws"]] == codes
    assert found["place"] == place
