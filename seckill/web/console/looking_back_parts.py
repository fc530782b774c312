"""What the handlers share that show operators the past of a sale."""

from dataclasses import dataclass

from seckill.engine.alarms.desk import AlarmDesk
from seckill.engine.rounds.looking_back import LookingBack
from seckill.engine.rounds.summary import SaleSummaries
from seckill.engine.rounds.timeline import Timelines


@dataclass(frozen=True, slots=True, kw_only=True)
class LookingBackParts:
    history: LookingBack
    summaries: SaleSummaries
    timelines: Timelines
    alarms: AlarmDesk
