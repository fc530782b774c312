"""The public API, name by name. A name that goes is a breaking change; one that comes is a promise."""

import subprocess
import sys
from importlib import import_module
from typing import assert_type

import pytest

import seckill
from seckill import OrderState, SeckillError, Settings, create_app, open_engine
from seckill.asgi import Application
from seckill.bootstrap.engine import Engine
from seckill.client import AsyncClient, Claimed, Client, Event, ExportedOrder, Order

NAMES = {
    "seckill": {"OrderState", "Outcome", "SeckillError", "Settings", "__version__", "create_app", "open_engine"},
    "seckill.client": {
        *("AsyncClient", "Client"),
        *(
            "CheckNeeded",
            "ClientError",
            "Conflict",
            "Denied",
            "EventsGone",
            "Invalid",
            "NoAnswer",
            "NotFound",
            "Refused",
            "TooMany",
            "Unavailable",
        ),
        *(
            "Audit",
            "AuditFinding",
            "AuditResult",
            "AuditUnits",
            "Claimed",
            "Custody",
            "DeadLetter",
            "Entry",
            "Order",
            "Orders",
        ),
        *("Event", "Events", "ExportedOrder", "Item", "ItemCustody", "Pass", "Round", "Sale", "Sales", "Try"),
        *("ReceivedEvent", "Webhook", "WebhookDeliveries", "WebhookDelivery", "WebhookNotGenuine", "verify_webhook"),
        *("ErasedBuyer", "ItemCodes", "OrderToPay", "UploadedImage", "Voucher", "VoucherCounts", "VouchersAdded"),
    },
    "seckill.payment": {
        *("Bill", "Capture", "Checkout", "CheckoutProvider", "Notice", "PaymentProvider", "Refund"),
        *("CheckoutRefused", "NotGenuine", "NotUnderstood", "ProviderUnavailable", "RefundPending", "RefundRefused"),
    },
    "seckill.testing": {"Breaches", "MemoryEngine", "PaymentSide", "check_provider", "memory_engine"},
}
METHODS = {
    *(
        "create_sale",
        "duplicate_sale",
        "change_sale",
        "sales",
        "sale",
        "pause_sale",
        "resume_sale",
        "close_sale",
        "add_units",
        "rounds",
        "custody",
    ),
    *("claim", "get_pass", "order", "wait_for_order", "orders", "pay", "cancel"),
    *("join", "entry_in", "leave"),
    *("cancel_order", "refund_order"),
    *("all_orders", "export_orders", "events", "follow_events", "event_pages"),
    *("create_webhook", "webhooks", "webhook", "change_webhook", "delete_webhook", "rotate_webhook"),
    *("test_webhook", "webhook_deliveries", "redeliver_webhook"),
    *("upload_image", "upload_vouchers", "count_vouchers", "voucher", "redeem_voucher"),
    *("audit", "dead_letters", "dead_letter", "replay_dead_letter", "discard_dead_letter"),
    *("export_buyer", "erase_buyer"),
    *("call", "document", "signed_in", "close"),
}


@pytest.mark.parametrize("module", NAMES)
def test_what_is_public(module: str) -> None:
    loaded = import_module(module)
    assert set(loaded.__all__) == NAMES[module]
    assert all(getattr(loaded, name) is not None for name in NAMES[module])
    assert NAMES[module] <= set(dir(loaded))


def test_what_clients_can_do() -> None:
    assert {name for name in vars(Client) if not name.startswith("_")} == METHODS
    assert {name for name in vars(AsyncClient) if not name.startswith("_")} == METHODS | {"ask"}


def test_an_unknown_name_is_said_to_be_none() -> None:
    with pytest.raises(AttributeError, match="module 'seckill' has no attribute 'nonsense'"):
        _ = seckill.nonsense  # type: ignore[attr-defined]


def test_importing_the_package_loads_nothing_of_it() -> None:
    told = "import sys, seckill; print(*(name for name in sys.modules if name.startswith('seckill')))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["seckill"]


async def test_an_engine_without_addresses_says_which_to_set() -> None:
    with pytest.raises(SeckillError, match=r"^Set SECKILL_REDIS_URL and SECKILL_DATABASE_URL: "):
        async with open_engine(Settings()):
            pytest.fail("there is nothing to open")


async def follow_the_types(client: Client, other: AsyncClient) -> None:
    """Never run: `make check` reads it, as a type checker reads a program that uses the names."""
    async with open_engine(Settings.from_environment()) as engine:
        assert_type(engine, Engine)
    assert_type(create_app(Settings()), Application)
    assert_type(client.claim("SALE", 2, key="k"), Claimed)
    assert_type(await other.claim("SALE", 2, key="k"), Claimed)
    assert_type(client.orders(limit=3).orders, list[Order])
    for order in client.all_orders(state=OrderState.PAID):
        assert_type(order, ExportedOrder)
    async for event in other.follow_events(after=3, types=["order.paid"]):
        assert_type(event, Event)
    client.claim(1)  # type: ignore[arg-type]
    client.claim("SALE", nonsense=1)  # type: ignore[call-arg]
