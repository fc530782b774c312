"""Draws made by hand from the definition, and what can be wrong with one. The checks in Python and in the browser are
held against the same."""

import json
from hashlib import sha256
from typing import Any

SEED = "5f" * 32
BEACON = "drand 4411873"
ENTRIES = ("pear", "fig", "apple", "quince", "plum", "Zest", "10", "9")


def hashed(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def listed(entries: Any) -> str:
    return hashed("\n".join(sorted(entries)))


def drawn(entries: Any = ENTRIES, seed: str = SEED, beacon: str | None = BEACON) -> dict[str, Any]:
    list_hash = listed(entries)
    ranks = {hashed(f"{seed}:{beacon or ''}:{list_hash}:{entry}"): entry for entry in entries}
    return {
        "commitment": hashed(seed),
        "algorithm": "sha256(seed:beacon:list_hash:entry_id)",
        "list_hash": list_hash,
        "seed": seed,
        "beacon": beacon,
        "entries": [ranks[rank] for rank in sorted(ranks)],
        "closed_at": "2026-11-20T09:59:59.500Z",
        "drawn_at": "2026-11-20T10:00:00.000Z",
    }


def _with(**changes: Any) -> dict[str, Any]:
    return drawn() | changes


def _swapped() -> dict[str, Any]:
    first, second, *rest = drawn()["entries"]
    return _with(entries=[second, first, *rest])


def _twice() -> dict[str, Any]:
    entries = drawn()["entries"]
    return _with(entries=[entries[0], *entries], list_hash=listed([entries[0], *entries]))


SOURCE = {
    "url": "https://beacon.example/public/{round}",
    "genesis_s": 1_795_000_000,
    "period_s": 30,
    "within_s": 600,
}
# 15 s later it is 1795168815, when number 5628 has been out for five seconds.
LISTED_AT, DUE = "2026-11-20T10:00:00.000Z", 5629
# 15 s later the source publishes: that value is known by then.
LISTED_ON_THE_EDGE = "2026-11-20T09:59:55.000Z"


def from_source(number: int | None = DUE, beacon: str | None = BEACON, **changes: Any) -> dict[str, Any]:
    said = {"beacon_source": SOURCE, "listed_at": LISTED_AT, "beacon_round": number, "beacon_missed_at": None}
    return drawn(beacon=beacon) | said | changes


MISSED = {"beacon_missed_at": "2026-11-20T10:11:00.000Z"}

# The flaws of a draw, each with the codes that must be found. `places` follows wherever ranks are others.
FLAWED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "two places are swapped": (_swapped(), {"places"}),
    "the last two places are swapped": (
        _with(entries=[*drawn()["entries"][:-2], *drawn()["entries"][:-3:-1]]),
        {"places"},
    ),
    "an entry was dropped": (_with(entries=drawn()["entries"][1:]), {"list_hash"}),
    "an entry came late, at the end": (_with(entries=[*drawn()["entries"], "late"]), {"list_hash", "places"}),
    "an entry was exchanged": (_with(entries=["friend", *drawn()["entries"][1:]]), {"list_hash"}),
    "the seed is another": (_with(seed="60" * 32), {"seed", "places"}),
    "another seed, and drawn with it": (drawn(seed="60" * 32) | {"commitment": hashed(SEED)}, {"seed"}),
    "the commitment is another": (_with(commitment=hashed("x")), {"seed"}),
    "the list's hash is another": (_with(list_hash=hashed("x")), {"list_hash", "places"}),
    "the beacon is another": (_with(beacon="drand 4411874"), {"places"}),
    "an entry has two places": (_twice(), {"twice", "places"}),
    "nobody is on a list of somebody": (_with(entries=[]), {"list_hash"}),
    "a beacon that was known before": (from_source(DUE - 1), {"beacon_round"}),
    "a beacon that was known in that second": (from_source(DUE - 1, listed_at=LISTED_ON_THE_EDGE), {"beacon_round"}),
    "a later beacon, which suited somebody": (from_source(DUE + 1), {"beacon_round"}),
    "a beacon of no number": (from_source(None), {"beacon_round"}),
    "no beacon where one was announced": (from_source(None, None), {"beacon_round"}),
    "a beacon that was missed, and drawn with one": (from_source() | MISSED, {"beacon_round"}),
}
SOUND = {
    "with a beacon": drawn(),
    "without one": drawn(beacon=None),
    "with the beacon of its source": from_source(),
    "with the next, if one is published in that second": from_source(listed_at=LISTED_ON_THE_EDGE),
    "before the first of its source": from_source(1, beacon_source=SOURCE | {"genesis_s": 1_800_000_000}),
    "its source did not answer": from_source(None, None) | MISSED,
    "of one": drawn(["only"]),
    "of nobody": drawn([]),
    "of a thousand": drawn([f"e{number}" for number in range(1000)]),
}


def written(draw: dict[str, Any]) -> str:
    return json.dumps(draw)
