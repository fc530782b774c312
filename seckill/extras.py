"""What not every shop needs: each is installed with an extra of the package."""

from collections.abc import Iterator
from contextlib import contextmanager

from seckill.errors import StartError

# Module → what needs it, and the extra that brings it.
DRIVERS = {
    "asyncpg": ("PostgreSQL", "postgres"),
    "aiomysql": ("MariaDB or MySQL", "mysql"),
    "pymysql": ("MariaDB or MySQL", "mysql"),
    "aiormq": ("RabbitMQ", "rabbitmq"),
    "stripe": ("Stripe", "stripe"),
    "httpx": ("The API of a payment provider", "alipay"),
    "segno": ("WeChat Pay", "wechat"),
    "PIL": ("Uploading pictures", "images"),
    "opentelemetry": ("Tracing", "otel"),
}


@contextmanager
def explained() -> Iterator[None]:
    """A driver that is missing becomes a StartError that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in DRIVERS:
            raise
        what, extra = DRIVERS[module]
        raise StartError(
            f'{what} needs the package {module}, which is not installed: run `pip install "seckill[{extra}]"`.'
        ) from error
