"""Amounts in words, and the table behind them."""

import re
from pathlib import Path

import pytest

from seckill.domain.money import DECIMALS, shown

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (9900, "CNY", "99.00 CNY"),
        (5, "CNY", "0.05 CNY"),
        (19850, "JPY", "19,850 JPY"),
        (1500, "KWD", "1.500 KWD"),
        (12345, "CLF", "1.2345 CLF"),
        (10**15 + 1, "USD", "10,000,000,000,000.01 USD"),  # more than a float could tell
        (9900, "XYZ", "99.00 XYZ"),
    ],
)
def test_amounts_are_told_with_their_currency(amount: int, currency: str, text: str) -> None:
    assert shown(amount, currency) == text


def test_the_table_has_what_shops_use_and_nothing_that_is_no_price() -> None:
    assert {DECIMALS[code] for code in ("CNY", "USD", "EUR", "GBP", "INR", "IDR")} == {2}
    assert {DECIMALS[code] for code in ("JPY", "KRW", "VND", "CLP", "ISK", "XOF")} == {0}
    assert {DECIMALS[code] for code in ("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND")} == {3}
    assert not {"XXX", "XTS", "XAU", "XDR", "DEM", "XYZ"} & set(DECIMALS)
    assert all(re.fullmatch("[A-Z]{3}", code) for code in DECIMALS)
    assert len(DECIMALS) == 165


def test_the_pages_have_the_same_table() -> None:
    text = (ROOT / "seckill/web/static/app/currencies.js").read_text()
    usual, others = re.search(r"const USUAL =(.*?);\nconst OTHERS = {(.*?)};", text, re.DOTALL).groups()  # type: ignore[union-attr]
    found = dict.fromkeys(re.findall("[A-Z]{3}", usual), 2)
    for decimals, codes in re.findall(r'^  (\d): "(.*)",$', others, re.MULTILINE):
        found |= dict.fromkeys(codes.split(" "), int(decimals))
    assert found == DECIMALS
