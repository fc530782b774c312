"""The shop's own database."""

from sqlalchemy import Boolean, CheckConstraint, Column, DateTime, ForeignKey, Integer, MetaData, String, Table, Text
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from teashop.passwords import hashed

metadata = MetaData()

users = Table(
    "users",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String, unique=True, nullable=False),
    Column("password", String, nullable=False),
    Column("is_staff", Boolean, nullable=False, default=False),
)

products = Table(
    "products",
    metadata,
    Column("id", String, primary_key=True),
    Column("title", String, nullable=False),
    Column("text", Text, nullable=False),
    Column("price_cents", Integer, nullable=False),
    Column("colours", String, nullable=False),  # to choose from, with commas between them; empty: it has none
    Column("stock", Integer, CheckConstraint("stock >= 0"), nullable=False),  # in the warehouse, and not sold
)

flash_sales = Table(
    "flash_sales",
    metadata,
    Column("id", String, primary_key=True),  # the shop's: seckill has it as `external_id`
    Column("sale_id", String, unique=True),  # seckill's; none until it is announced
    Column("product_id", ForeignKey("products.id"), nullable=False),
    Column("units", Integer, nullable=False),
    Column("price_cents", Integer, nullable=False),
    Column("begins_at", DateTime(timezone=True), nullable=False),
    Column("ends_at", DateTime(timezone=True), nullable=False),
    Column("set_aside", Integer, nullable=False),  # of the product's stock, for nobody but this sale
    Column("is_settled", Boolean, nullable=False, default=False),  # nothing more can happen to it
)

orders = Table(
    "orders",
    metadata,
    Column("id", String, primary_key=True),
    Column("buyer", String, nullable=False, index=True),  # the user's id, as the shop has signed it for seckill
    Column("product_id", ForeignKey("products.id"), nullable=False),
    Column("flash_sale_id", ForeignKey("flash_sales.id")),  # none: bought from the shelf
    Column("colour", String, nullable=False),
    Column("quantity", Integer, nullable=False),
    Column("price_cents", Integer, nullable=False),
    Column("state", String, nullable=False),
    Column("held", Integer, nullable=False),  # units that are not in the stock any more because of it
    Column("at", DateTime(timezone=True), nullable=False),
)

payments = Table(
    "payments",
    metadata,
    Column("id", String, primary_key=True),
    Column("order_id", String, nullable=False),
    Column("amount_cents", Integer, nullable=False),
    Column("is_told", Boolean, nullable=False),  # seckill knows of it
)

refunds = Table(
    "refunds",
    metadata,
    Column("id", String, primary_key=True),  # seckill's `refund_id`: each is made once
    Column("payment_id", ForeignKey("payments.id"), nullable=False),
    Column("amount_cents", Integer, nullable=False),
)

letters = Table(
    "letters",
    metadata,
    Column("webhook_id", String, primary_key=True),  # so that nobody gets the same letter twice
    Column("order_id", String, nullable=False),
    Column("text", String, nullable=False),
)

# A line each: the cursor in seckill's feed, and the secret of the webhook.
notes = Table("notes", metadata, Column("name", String, primary_key=True), Column("value", String, nullable=False))

PEOPLE = [("staff", True), ("ann", False), ("bob", False)]
GOODS = [
    (
        "teapot",
        "Iron teapot",
        "Cast in one piece, holds 0.8 l and keeps tea warm for an hour. Enamelled when you order it.",
        6900,
        "black,jade,rust",
    ),
    ("cups", "Two cups", "Thrown by hand, no two alike. For tea that wants to be looked at.", 2400, ""),
    ("sencha", "First flush sencha", "100 g from the first picking in May. Brew it at 70 °C.", 1850, ""),
]
STOCK = 40


async def prepare(database: AsyncEngine) -> None:
    """Makes the tables, some people (their password is their name) and some goods, if they are not there yet."""
    async with database.begin() as tx:
        await tx.run_sync(metadata.create_all)
        people = [{"name": name, "password": hashed(name), "is_staff": is_staff} for name, is_staff in PEOPLE]
        goods = [
            {"id": id_, "title": title, "text": text, "price_cents": price, "colours": colours, "stock": STOCK}
            for id_, title, text, price, colours in GOODS
        ]
        await tx.execute(insert(users).on_conflict_do_nothing(), people)
        await tx.execute(insert(products).on_conflict_do_nothing(), goods)


async def noted(tx: AsyncConnection, name: str) -> str | None:
    value: str | None = await tx.scalar(notes.select().with_only_columns(notes.c.value).where(notes.c.name == name))
    return value


async def note(tx: AsyncConnection, name: str, value: str) -> None:
    row = insert(notes).values(name=name, value=value)
    await tx.execute(row.on_conflict_do_update(index_elements=["name"], set_={"value": value}))
