import logging
import time

from django.core.management.base import BaseCommand

from bookshop.feed import read_on
from bookshop.flash import announce_all
from seckill.client import ClientError

WAIT_S = 20.0
PAUSE_S = 1.0

log = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Follows seckill's events for as long as the shop is open. One of them is enough."

    def handle(self, *_: object, **__: object) -> None:
        while True:
            try:
                announce_all()
                read_on(WAIT_S)
            except ClientError as error:  # seckill is away, or busy
                log.warning("the feed cannot be read: %s", error)
                time.sleep(PAUSE_S)
