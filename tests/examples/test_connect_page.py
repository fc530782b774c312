"""docs/connect-your-shop.md, typed in as it stands: every file and command, in a terminal beside `seckill up`."""

import asyncio
import os
import re
import secrets
import signal
import subprocess
import sys
from pathlib import Path

from seckill.lab.servers.ports import free_port
from seckill.settings import Settings
from tests.e2e.stack import Stack, running
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / name for name in ("connect-your-shop.md", "connect-your-shop.zh-CN.md")]
SHOP = "http://127.0.0.1:9000"
SECKILL = "http://127.0.0.1:8000"
LETTERS = "until [ -f letters.db ]; do sleep 0.1; done; echo 'The letter has come.'; seckill webhook test 1"


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Returns for each block its language, its text, and the file that is named last before it."""
    text = page.read_text(encoding="utf-8")
    found = []
    for block in re.finditer(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        named = re.findall(r"`(\w+\.py)`", text[: block.start()])
        found.append((block[1], block[2], named[-1] if named else ""))
    return found


def test_both_languages_say_the_same() -> None:
    assert blocks(PAGES[0]) == blocks(PAGES[1])


async def test_the_page_works_word_by_word(folder: Path) -> None:
    started, *typed, live = blocks(PAGES[0])
    assert started[1] == f"make install\nSECKILL_ORIGINS={SHOP} .venv/bin/seckill up\n"
    shop_port = free_port()
    shop = SHOP.replace("9000", str(shop_port))
    stack = Stack(folder, api=1, settings={"SECKILL_ORIGINS": shop})
    clone = folder / "clone"
    clone.mkdir()
    (clone / ".seckill").symlink_to(stack.data)
    (clone / ".venv").symlink_to(Path(sys.executable).parents[1])
    script = ""
    for language, text, name in typed:
        text = text.replace(SHOP, shop).replace(SECKILL, stack.url).replace("--port 9000", f"--port {shop_port}")
        script += (
            f"cat > {name} <<'END OF FILE'\n{text}END OF FILE\n" if language == "python" else f"{text}echo; echo ---\n"
        )
    async with running(stack):
        said = await run(script + LETTERS, clone)
    sale_id, registered, bought, paid, followed, exported, refunded, codes, redeemed, told = said.split("---\n")[1:11]
    assert re.fullmatch(r"\w{13}\n\n", sale_id)
    assert registered.strip() == ""
    order_id = bought.split()[0]
    assert re.fullmatch(r"\w{13}", order_id)
    assert bought.count("4900") + bought.count("49.00") == 1, "two presses are one order"
    assert '"state":"paid"' in paid
    assert followed == "bob 1 paid\n\n"
    assert exported.splitlines()[1].startswith(f"{order_id},")
    assert len(exported.strip().splitlines()) == 2
    assert refunded.splitlines()[-2] == "bob 1 refunded"
    assert "3 free, 0 given" in codes
    assert re.match(r"Redeemed at .*, order \w{13} of ann\.", redeemed)
    assert "The letter has come." in told
    assert "webhook.test" in told
    assert "HTTP 204" in told
    assert said.count("END OF FILE") == 0
    check_settings(live[1])


async def run(script: str, folder: Path) -> str:
    """Runs it as in a terminal, which stops at the first failure, and takes what it started with it."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("SECKILL_", "SHOP_"))}
    process = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    output = asyncio.create_task(asyncio.to_thread(process.communicate))
    try:
        async with asyncio.timeout(PATIENCE_S):
            while process.poll() is None:
                await asyncio.sleep(0.1)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
    said, complaints = await output
    assert process.returncode == 0, said + complaints
    return str(said)


def check_settings(text: str) -> None:
    """Those of a real sale are settings, and enough for a role of its own to start with."""
    for name in ("ONE_SECRET", "ANOTHER_SECRET", "A_THIRD_SECRET"):
        text = text.replace(f"={name}\n", f"={secrets.token_urlsafe(36)}\n")
    lines = dict(line.split("=", 1) for line in text.splitlines())
    settings = Settings.from_environment(lines)
    assert (settings.payment_provider, settings.rehearsal, settings.demo_sign_in) == ("callback", "off", "off")
