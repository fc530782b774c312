"""The page `/docs` loads only what comes with the package and has no inline script or style."""

import re
from pathlib import Path

import seckill.web

STATIC = Path(seckill.web.__file__).parent / "static"
PAGE = (STATIC / "docs.html").read_text(encoding="utf-8")


def test_what_the_page_loads_is_there() -> None:
    loaded = re.findall(r'(?:src|href)="(\./static/[^"]+)"', PAGE)
    assert [Path(address).name for address in loaded] == ["swagger-ui.css", "swagger-ui-bundle.js", "docs.js"]
    for address in loaded:
        assert (STATIC / address.removeprefix("./static/")).stat().st_size > 0


def test_nothing_comes_from_elsewhere() -> None:
    addresses = re.findall(r'(?:src|href)="([^"]*)"', PAGE)
    assert all(address.startswith("./") or address == "data:," for address in addresses)
    assert "//" not in (STATIC / "docs.js").read_text(encoding="utf-8").replace("null, //", "")


def test_the_page_needs_no_leave_for_inline_code() -> None:
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=", PAGE) == []


def test_the_vendored_files_tell_their_origin() -> None:
    folder = STATIC / "vendor" / "swagger-ui"
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert re.search(r"`swagger-ui-dist`, version 5\.\d+\.\d+, licence\s+Apache-2\.0", readme)
    assert {path.name for path in folder.iterdir()} == {
        "LICENSE",
        "NOTICE",
        "README.md",
        "swagger-ui-bundle.js",
        "swagger-ui-bundle.js.LICENSE.txt",
        "swagger-ui.css",
    }
