"""How long tests wait for what must happen.

A machine may have ten times as much to do as it can. So a test waits for an event, and its patience is there only to
end a test that hangs; the time that something takes is asserted nowhere. The same goes for the engine's own patience
with its stores, which `patient` makes as long for every test. A test that is about a deadline sets its own.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy.pool import QueuePool

from seckill.audit import database
from seckill.backends.redis import board, servers
from seckill.backends.sql import ledger, migration, mysql, postgres, schema, sqlite, transactions
from seckill.local import gate_file
from seckill.operations.doctor import database as examination

PATIENCE_S = 180.0
# For a story of many events, such as a crowd whose servers are killed one after the other.
STORY_PATIENCE_S = 900.0

# Where the engine gives up by itself what a busy store would have answered a while later. What it looks for again and
# again, such as the primary after a failover, keeps its short deadlines.
_GIVES_UP = [
    (transactions, "WRITE_WITHIN_S"),
    (transactions, "READ_WITHIN_S"),
    (migration, "READ_WITHIN_S"),
    (schema, "LOOK_WITHIN_S"),
    (ledger, "PING_WITHIN_S"),
    (sqlite, "LOCK_WAIT_S"),
    (sqlite, "BUSY_WAIT_S"),
    (postgres, "CONNECT_WITHIN_S"),
    (mysql, "CONNECT_WITHIN_S"),
    (board, "ANSWER_WITHIN_S"),
    (servers, "CONNECT_TIMEOUT_S"),
    (database, "WITHIN_S"),
    (examination, "WITHIN_S"),
    (gate_file, "MARKED_WITHIN_S"),
]


@pytest.fixture(scope="session", autouse=True)
def patient() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module, name in _GIVES_UP:
            patch.setattr(module, name, PATIENCE_S)
        # The engine leaves it to its own deadlines how long a call waits for a connection; the library gives up earlier
        # than those above.
        init: Any = QueuePool.__init__
        pool_size, max_overflow, _, use_lifo = init.__defaults__
        patch.setattr(init, "__defaults__", (pool_size, max_overflow, PATIENCE_S, use_lifo))
        yield
