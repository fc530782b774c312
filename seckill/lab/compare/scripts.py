"""The scripts of the strategies, and the keys that they use."""

from importlib.resources import files

STOCK = "ladder:stock"
BUYERS = "ladder:buyers"
COUNTER = "ladder:counter"
QUEUE = "ladder:orders"
FALLEN = "ladder:fallen"

LUA = files("seckill.lab.compare") / "lua"


def script(name: str) -> str:
    return (LUA / f"{name}.lua").read_text(encoding="utf-8")
