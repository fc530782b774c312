"""Pictures that operators upload: checked, made anew, and shown by every node."""

import asyncio
import io
import struct
import sys
import zlib
from typing import Any

import httpx2
import pytest
from PIL import Image
from sqlalchemy import update

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.tables import pictures
from seckill.bootstrap.engine import Engine
from seckill.domain.picture import BYTES_MAX, PIXELS_MAX, SIDE_MAX
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, buyer, make_node


def written(size: tuple[int, int] = (64, 48), kind: str = "JPEG", mode: str = "RGB", **options: Any) -> bytes:
    file = io.BytesIO()
    Image.new(mode, size, (200, 30, 30, 128)[: len(mode)]).save(file, kind, **options)
    return file.getvalue()


async def upload(node: Node, content: bytes, **headers: str) -> httpx2.Response:
    return await node.http.post("/v1/admin/images", content=content, headers=OPERATOR | headers)


async def uploaded(node: Node, content: bytes) -> str:
    answer = await upload(node, content)
    assert answer.status_code == 201, answer.text
    url: str = answer.json()["url"]
    return url


def opened(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
async def test_a_picture_is_shown_for_ever_under_one_address(node: Node, kind: str) -> None:
    url = await uploaded(node, written(kind=kind))
    assert await uploaded(node, written(kind=kind)) == url
    shown = await node.http.get(url)
    assert (shown.status_code, shown.headers["content-type"]) == (200, "image/webp")
    assert opened(shown.content).size == (64, 48)
    assert shown.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert shown.headers["x-content-type-options"] == "nosniff"
    assert shown.headers["content-security-policy"] == "default-src 'none'; sandbox"
    again = await node.http.get(url, headers={"If-None-Match": shown.headers["etag"]})
    assert again.status_code == 304
    sale = await node.create(images=[url])
    assert (await node.http.get(f"/v1/sales/{sale['id']}")).json()["images"] == [url]


async def test_nothing_but_the_picture_is_passed_on(node: Node) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    exif[0x010F] = "SECRET CAMERA"
    exif.get_ifd(0x8825)[1] = "N"
    content = written((80, 40), exif=exif, comment=b"SECRET COMMENT")
    assert b"SECRET" in content
    shown = (await node.http.get(await uploaded(node, content))).content
    assert b"SECRET" not in shown
    picture = opened(shown)
    assert (picture.size, dict(picture.getexif()), picture.info.get("icc_profile")) == ((40, 80), {}, None)


async def test_a_large_picture_becomes_smaller_and_a_transparent_one_stays_so(node: Node) -> None:
    answer = (await upload(node, written((3200, 1000)))).json()
    assert (answer["width"], answer["height"]) == (SIDE_MAX, 500)
    clear = opened((await node.http.get(await uploaded(node, written(kind="PNG", mode="RGBA")))).content)
    assert clear.mode == "RGBA"


def bomb(width: int, height: int) -> bytes:
    """Returns a PNG whose header claims this size, without any pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


REFUSED = {
    "nothing": (b"", "is empty: send the picture itself"),
    "text": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "must be a JPEG, PNG or WebP picture"),
    "another kind": (written(kind="GIF"), "must be a JPEG, PNG or WebP picture"),
    "50 megapixels": (bomb(10_000, 5_000), "has too many pixels: at most 40 million"),
    "a bomb": (bomb(60_000, 60_000), "has too many pixels: at most 40 million"),
    "one more than allowed": (bomb(PIXELS_MAX + 1, 1), "has too many pixels: at most 40 million"),
    "half a picture": (written((640, 480))[:2000], "is damaged and cannot be read"),
    "a PNG without its end": (written(kind="PNG")[:-1], "is damaged and cannot be read"),
    "a picture without pixels": (bomb(640, 480), "is damaged and cannot be read"),
}


@pytest.mark.parametrize(("content", "why"), REFUSED.values(), ids=REFUSED)
async def test_what_is_no_picture_is_refused(node: Node, content: bytes, why: str) -> None:
    refused = await upload(node, content, **{"Content-Type": "image/jpeg"})  # whatever it is called
    assert (refused.status_code, refused.json()["errors"]) == (422, [{"field": "body", "message": why}])


async def test_who_may_upload_and_how_much(node: Node) -> None:
    assert (await node.http.post("/v1/admin/images", content=written())).status_code == 401
    assert (await node.http.post("/v1/admin/images", content=written(), headers=buyer("ann"))).status_code == 403
    assert (await upload(node, bytes(BYTES_MAX + 1))).status_code == 413
    form = await upload(node, b"x", **{"Content-Type": "multipart/form-data; boundary=x"})
    assert form.json()["errors"][0]["field"] == "Content-Type"


async def test_a_sale_shows_only_what_is_there(node: Node) -> None:
    for image, status in ((f"/images/{'0' * 64}.webp", 422), ("/images/x.webp", 422), ("/elsewhere.webp", 422)):
        sale = await node.create()
        path = f"/v1/sales/{sale['id']}"
        refused = await node.http.patch(path, json={"images": [image]}, headers=OPERATOR)
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (status, "images[0]")
        assert (await node.http.get(image)).status_code == 404


async def test_another_node_shows_it_too(node: Node, settings: Settings, engine: Engine) -> None:
    url = await uploaded(node, written())
    other = await make_node(settings, engine)
    assert (await other.http.get(url)).status_code == 200
    await other.http.aclose()


async def test_what_no_sale_shows_is_forgotten_after_a_while(node: Node, settings: Settings) -> None:
    used, of_item, unused, young = [await uploaded(node, written((side, side))) for side in (10, 15, 20, 30)]
    await node.create(images=[used])
    await node.create(units=None, items=[{"title": "M", "units": 1, "image": of_item}])
    desk = node.api.context.pictures
    assert await desk.forget_unused() == 0
    ledger = node.engine.ledger
    assert isinstance(ledger, SqlLedger)
    old = [url[len("/images/") : -len(".webp")] for url in (used, of_item, unused)]
    async with ledger.database.writers.begin() as connection:
        await connection.execute(update(pictures).where(pictures.c.digest.in_(old)).values(used_ms=1))
    assert await desk.forget_unused() == 1
    assert [(await node.http.get(url)).status_code for url in (used, of_item, unused, young)] == [200, 200, 404, 200]


async def test_without_what_it_takes_the_answer_says_so(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == "PIL"]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "PIL", None)
    refused = await upload(node, b"x")
    assert (refused.status_code, refused.json()["code"]) == (503, "no_pictures")
    assert "seckill[images]" in refused.json()["detail"]


async def test_pictures_are_made_one_at_a_time(node: Node) -> None:
    """Each may take a hundred megabytes while it is unpacked."""
    running = most = 0
    make = node.engine.make_picture

    def counted(content: bytes) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return make(content)
        finally:
            running -= 1

    node.api.context.pictures._make = counted
    await asyncio.gather(*[uploaded(node, written((100 + side, 100))) for side in range(8)])
    assert most == 1
