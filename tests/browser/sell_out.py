"""A sale that sells out, as a moving picture: what one buyer sees on a phone, and what the console shows meanwhile."""

import asyncio
import io
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw
from playwright.async_api import Page, expect

from seckill.cli import demo_sales
from seckill.client import AsyncClient, Conflict
from tests.browser.visiting import Visit, in_s, press, upload
from tests.e2e.stack import Stack
from tests.patience import PATIENCE_S

GOODS = Path(demo_sales.__file__).parent / "demo_pictures" / "phone.webp"
UNITS = 100
CROWD = 240
LASTS_S = 12.0  # how long the crowd keeps coming
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1180, "height": 740}  # all seven places of a unit in one row
LIST_PX = 264  # the console's list of sales, which is left out
GAP, ROUND, SCALE = 24, 16, 0.7
GROUND = "#e4e5e9"
FRAME_MS, LAST_MS, TIMES = 550, 4_000, 3
FRAMES_MAX = 26


async def sell_out(visit: Visit, stack: Stack, to: Path) -> None:
    sale = await stack.create_sale(
        title="Phone, 128 GB",
        units=UNITS,
        price_cents=99900,
        list_price_cents=199900,
        images=[await upload(stack, GOODS.read_bytes())],
        begins_at=in_s(60),
        ends_at=in_s(3600),
    )
    desk = await visit.console()
    await desk.set_viewport_size({"width": DESK["width"], "height": DESK["height"]})
    await desk.goto(f"{stack.url}/console#/sales/{sale['id']}")
    await expect(desk.locator(".custody")).to_be_visible()
    phone = await visit.sale_page(sale, "ann", viewport=PHONE)
    frames: list[Image.Image] = []
    for second in (3, 2, 1):
        await expect(phone.get_by_role("timer")).to_contain_text(f"00:00:0{second}", timeout=120_000)
        frames.append(await _both(phone, desk))
    await press(phone)  # before the others, however busy the machine is
    crowd = asyncio.create_task(_come(stack, sale))
    pays = asyncio.create_task(_pay(phone))
    while not crowd.done():
        frames.append(await _both(phone, desk))
        await asyncio.sleep(FRAME_MS / 1000)
    await asyncio.gather(crowd, pays)
    await expect(desk.locator(".view-head")).to_contain_text("Sold out")
    await expect(desk.locator(".legend [data-place=paid] dd").first).to_have_text(str(UNITS))
    frames = [*_thinned(frames), await _both(phone, desk)]
    times = [FRAME_MS] * (len(frames) - 1) + [LAST_MS]
    frames[0].save(to, save_all=True, append_images=frames[1:], duration=times, loop=TIMES, quality=82, method=6)
    await desk.close()
    await phone.close()


def _thinned(frames: list[Image.Image]) -> list[Image.Image]:
    """A busy machine takes longer for the same: the picture is not larger for it."""
    many = min(len(frames), FRAMES_MAX)
    return [frames[place * len(frames) // many] for place in range(many)]


async def _pay(page: Page) -> None:
    await expect(page.locator("[data-action=pay]")).to_be_enabled()
    await page.wait_for_timeout(1500)  # so that it can be read
    await page.locator("[data-action=pay]").click()


async def _come(stack: Stack, sale: dict[str, Any]) -> None:
    """Most of them early; who gets a unit pays for it soon, and who does not get one goes. However busy the machine is,
    nobody gives up."""

    async def one(number: int) -> None:
        await asyncio.sleep(LASTS_S * (number / CROWD) ** 1.5)
        async with AsyncClient(stack.url, stack.token(f"fan-{number}"), repeat_for_s=PATIENCE_S) as fan:
            try:
                order = await fan.claim(sale["id"])
            except Conflict:
                return
            await fan.wait_for_order(order.order_id, within_s=PATIENCE_S)
            await asyncio.sleep(1 + number % 5)
            await fan.pay(order.order_id)

    await asyncio.gather(*map(one, range(CROWD)))


async def _both(phone: Page, desk: Page) -> Image.Image:
    clip = {"x": LIST_PX, "y": 0, "width": DESK["width"] - LIST_PX, "height": DESK["height"]}
    pictures = [await phone.screenshot(), await desk.screenshot(clip=clip)]  # type: ignore[arg-type]
    parts = [Image.open(io.BytesIO(picture)).convert("RGB") for picture in pictures]
    width = sum(part.width for part in parts) + GAP * (len(parts) + 1)
    whole = Image.new("RGB", (width, DESK["height"] + 2 * GAP), GROUND)
    left = GAP
    for part in parts:
        mask = Image.new("L", part.size)
        ImageDraw.Draw(mask).rounded_rectangle((0, 0, part.width - 1, part.height - 1), ROUND, fill=255)
        whole.paste(part, (left, GAP), mask)
        left += part.width + GAP
    return whole.resize((round(whole.width * SCALE), round(whole.height * SCALE)), Image.Resampling.LANCZOS)
