"""The steps of the ladder, from the bottom up."""

from collections.abc import Mapping

from seckill.lab.compare.strategies.async_list import AsyncList
from seckill.lab.compare.strategies.async_memory import AsyncMemory
from seckill.lab.compare.strategies.async_pubsub import AsyncPubsub
from seckill.lab.compare.strategies.async_rabbit import AsyncRabbit
from seckill.lab.compare.strategies.async_stream import AsyncStream
from seckill.lab.compare.strategies.engine import EngineStrategy
from seckill.lab.compare.strategies.engine_release import EngineRelease
from seckill.lab.compare.strategies.give_back_copy import GiveBackCopy
from seckill.lab.compare.strategies.give_back_plus_one import GiveBackPlusOne
from seckill.lab.compare.strategies.give_back_script import GiveBackScript
from seckill.lab.compare.strategies.give_back_set_one import GiveBackSetOne
from seckill.lab.compare.strategies.sync_cas import SyncCas
from seckill.lab.compare.strategies.sync_guarded import SyncGuarded
from seckill.lab.compare.strategies.sync_naive import SyncNaive
from seckill.lab.compare.strategies.sync_process_lock import SyncProcessLock
from seckill.lab.compare.strategies.sync_redis_lock import SyncRedisLock
from seckill.lab.compare.strategies.sync_row_lock import SyncRowLock
from seckill.lab.compare.strategy import Strategy

LADDER: Mapping[str, type[Strategy]] = {
    step.name: step
    for step in (
        SyncNaive,
        SyncRowLock,
        SyncCas,
        SyncGuarded,
        SyncProcessLock,
        SyncRedisLock,
        AsyncMemory,
        AsyncList,
        AsyncPubsub,
        AsyncStream,
        AsyncRabbit,
        EngineStrategy,
        GiveBackPlusOne,
        GiveBackSetOne,
        GiveBackCopy,
        GiveBackScript,
        EngineRelease,
    )
}
