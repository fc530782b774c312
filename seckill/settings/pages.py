"""Settings about what buyers see, and on whose pages."""

from dataclasses import dataclass, field
from typing import Literal

from seckill.settings import kinds
from seckill.settings.setting import about


@dataclass(frozen=True, kw_only=True)
class PageSettings:
    shop_name: str = field(default="seckill", metadata=about(str, "The name at the top of the buyers' pages."))
    sign_in_url: str = field(
        default="",
        metadata=about(
            kinds.url("http", "https"),
            "Where the buyers' pages send people who are not signed in.",
        ),
    )
    pay_url: str = field(
        default="",
        metadata=about(
            kinds.url("http", "https"),
            "Where the buyers' pages send people to pay, with `order_id` in the query.",
        ),
    )
    image_hosts: tuple[str, ...] = field(
        default=(),
        metadata=about(
            kinds.hosts,
            "Whose pictures a sale may show, such as `cdn.example.com,*.img.example.com`; they are loaded over https.",
        ),
    )
    origins: tuple[str, ...] = field(
        default=(),
        metadata=about(
            kinds.origins,
            "Pages of which other origins may sell with `embed.js` or call the buyers' API, such as "
            "`https://shop.example.com,http://localhost:3000`; when empty, only our own.",
        ),
    )
    demo_sign_in: Literal["on", "off"] = field(
        default="off",
        metadata=about(
            kinds.one_of("on", "off"),
            "`on`: anybody may sign in under any name, as with `seckill up --demo`; never in production.",
        ),
    )
    rehearsal: Literal["off", "on"] = field(
        default="off",
        metadata=about(
            kinds.one_of("off", "on"),
            "`on`: this is a test, so the roles start with the sandbox, demo sign-in or failpoints as well, and every "
            "page says so.",
        ),
    )
