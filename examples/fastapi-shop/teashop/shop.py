"""What every part of the shop works with: its settings, its database, and seckill."""

import os
from dataclasses import dataclass, fields
from typing import Annotated, Self

from fastapi import Depends, Request
from sqlalchemy.ext.asyncio import AsyncEngine

from seckill.client import AsyncClient


@dataclass(frozen=True)
class Settings:
    """From the environment: `SHOP_URL`, `SHOP_DATABASE`, … `examples/run.py` sets all of them."""

    url: str  # of the shop, as browsers and seckill reach it
    database: str
    session_secret: str
    seckill_url: str
    admin_key: str  # what the shop may do in seckill
    jwt_secret: str  # signs who a buyer is
    payment_secret: str  # signs what is said about money, in both directions

    @classmethod
    def from_environment(cls) -> Self:
        return cls(**{field.name: os.environ[f"SHOP_{field.name.upper()}"] for field in fields(cls)})


@dataclass(frozen=True)
class Shop:
    settings: Settings
    database: AsyncEngine
    seckill: AsyncClient  # with the admin key; `signed_in` is the same for a buyer


def the_shop(request: Request) -> Shop:
    shop: Shop = request.app.state.shop
    return shop


OurShop = Annotated[Shop, Depends(the_shop)]
