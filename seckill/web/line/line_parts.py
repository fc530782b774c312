"""What the handlers of lines and of stories share."""

from dataclasses import dataclass

from seckill.domain.receipt import Receipts
from seckill.engine.door.address_rate import AddressRate
from seckill.engine.line.drawn_list import DrawnList
from seckill.engine.line.figures import LineFigures
from seckill.engine.line.joining import LineDesk
from seckill.engine.line.watching import EntryWatches
from seckill.engine.rounds.story import Stories


@dataclass(frozen=True, slots=True, kw_only=True)
class LineParts:
    desk: LineDesk
    figures: LineFigures
    drawn: DrawnList
    stories: Stories
    watches: EntryWatches
    rate: AddressRate
    receipts: Receipts
