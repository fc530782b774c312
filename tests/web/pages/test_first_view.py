"""The server draws the first view of a page, before any script."""

import html
import json
import re
import subprocess
from pathlib import Path

from playwright._impl._driver import compute_driver_executable

import seckill.web
from seckill.web.pages.first_view import LISTED_MAX, cover, page_around, price_shown, view_of_list, view_of_sale
from seckill.web.pages.page_texts import language_of, texts_in
from tests.web.sales.test_calendar_file import sale

APP = Path(seckill.web.__file__).parent / "static" / "app"
EVIL = '"><script>alert(1)</script>&amp;'


def test_goods_price_state_and_times_are_there() -> None:
    shown = view_of_sale(sale(list_price_cents=14900, state="open", left_percent=25), "/shop")
    for part in (
        ">Kettle</h1>",
        "CN¥99<",
        "<s>CN¥149</s>",
        "You save CN¥50",
        ">On now<",
        ">Few left<",
        'data-left="25"',
    ):
        assert part in shown.body
    assert '<time datetime="2026-11-18T02:00:00.000Z">18 Nov 2026, 02:00</time>' in shown.body
    assert shown.title == "Kettle"
    assert json.loads(shown.data)["sale"]["id"] == "7K3M", "the script goes on with the same"


def test_it_begins_in_the_language_of_the_goods_and_in_the_zone_of_the_sale() -> None:
    shown = view_of_sale(sale(title="无线耳机", timezone="Asia/Shanghai", repeat="daily"), "")
    assert shown.language == "zh"
    assert "2026年11月18日 10:00" in shown.body
    assert "北京时间" in shown.body, "as its buyers call the zone"
    assert "Asia/Tokyo" in view_of_sale(sale(title="无线耳机", timezone="Asia/Tokyo"), "").body
    assert "¥99" in shown.body
    assert [language_of(words) for words in ("Kettle", "やかん", "電気ケトル", "水壶", "")] == [
        "en",
        "ja",
        "ja",
        "zh",
        "en",
    ]


def test_a_zone_that_is_not_known_here_is_no_reason_to_show_nothing() -> None:
    assert "02:00" in view_of_sale(sale(timezone="Mars/Olympus"), "").body


def test_nothing_of_a_sale_becomes_markup() -> None:
    shown = view_of_sale(sale(title=EVIL, images=[f"https://cdn.example.com/{EVIL}"]), "")
    listed = view_of_list([sale(title=EVIL)], 1, EVIL, "")
    for made in (shown.body, shown.head, listed.body, page_around(listed, EVIL, "free", "")):
        assert "<script" not in made
        assert html.escape(EVIL) in made


def test_the_list_has_what_is_on_and_ends_soonest_first_and_what_cannot_be_bought_last() -> None:
    sales = [
        sale(id="GONE", title="Gone", state="sold_out"),
        sale(id="LATE", title="Late", state="open", ends_at="2026-11-18T09:00:00.000Z"),
        sale(id="NEXT", title="Next", state="scheduled"),
        sale(id="SOON", title="Soon", state="open", ends_at="2026-11-18T02:30:00.000Z"),
        sale(id="HALT", title="Halt", state="paused"),
    ]
    shown = view_of_list(sales, len(sales), "Shop", "/at")
    assert re.findall('href="/at/sales/([A-Z]+)"', shown.body) == ["SOON", "LATE", "NEXT", "GONE", "HALT"]
    many = view_of_list([sale(id=f"S{number}") for number in range(40)], 40, "Shop", "")
    assert many.body.count("<li>") == LISTED_MAX
    assert json.loads(many.data)["list"]["many"] == 40


def test_amounts_are_as_the_script_shows_them() -> None:
    shown = [
        price_shown(*of) for of in ((0, "CNY", "en"), (99_950, "CNY", "zh"), (1_200_000, "JPY", "ja"), (5, "KWD", "en"))
    ]
    assert shown == ["Free", "¥999.50", "￥1,200,000", "KWD 0.005"]


def test_the_texts_of_a_language_are_read_as_browsers_read_them() -> None:
    for language in ("en", "zh", "ja"):
        source = (APP / "texts" / f"{language}.js").read_text(encoding="utf-8")
        assert len(texts_in(language)) == len(re.findall(r"^  \w+:", source, re.MULTILINE))


def test_script_and_server_draw_the_same_cover() -> None:
    """Otherwise the picture would change when the script takes over."""
    node, _ = compute_driver_executable()  # the one that Playwright brings along
    source = (APP / "cover.js").read_text(encoding="utf-8").replace('import { html } from "./ui.js";', "")
    titles = ["Kettle", "无线降噪耳机", "ساعة ذكية", " ÉCLAIR ", "42", "🎧 Headphones", "!"]
    program = f"""
        const html = (parts, ...values) => String.raw({{ raw: parts }}, ...values);
        {source.replace("export function", "function")}
        console.log(JSON.stringify({json.dumps(titles)}.map((title) => Cover({{ title }}))));"""
    done = subprocess.run([node, "--input-type=module", "-e", program], capture_output=True, text=True, check=True)
    for title, drawn in zip(titles, json.loads(done.stdout), strict=True):
        ours = re.findall(r'class="?(cover p\d)|c[xy]="?(\d+)|<text[^>]*>([^<]*)<', cover(title))
        theirs = re.findall(r'class="?(cover p\d)|c[xy]="?(\d+)|<text[^>]*>([^<]*)<', drawn)
        assert ours == theirs, title
