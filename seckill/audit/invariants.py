"""The invariants, in the order in which they are reported. A new promise of the audit begins here."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Invariant:
    """`safety`: if the invariant is broken, a unit may be sold twice or an order lost. The others are about time."""

    name: str
    says: str
    safety: bool = True


INVARIANTS = (
    Invariant("stock", "In the gate, available = total − admitted + released, from 0 to total."),
    Invariant("items", "Each item's units add up, in the gate and in the ledger, and together they are the round's."),
    Invariant("buyers", "In the gate, the buyers' records add up to what was admitted and released."),
    Invariant("limit", "No buyer holds more units than the limit."),
    Invariant("epoch", "Gate and ledger speak of the same round: epoch, opening and rules."),
    Invariant("counters", "In the ledger, sold and written are what the rows add up to, and sold ≤ total."),
    Invariant("orders", "An order is the same in the ledger and in the gate, and its row is sound."),
    Invariant("history", "Every order came to its state step by step, and what is over stays over."),
    Invariant("releases", "What is over was released once, what is not over was not."),
    Invariant("admission", "No order in the ledger without an admission in the gate."),
    Invariant("give_back", "No unit given back that the ledger has not decided to give back."),
    Invariant("lost", "Every admitted order is queued, set aside or in the ledger."),
    Invariant("queue", "Every queue entry is an admission, with the same content."),
    Invariant("time", "Every order has the time to pay that its sale says, and none expired before it was over."),
    Invariant("money", "Every paid order has its money, and no money pays for two orders or for none."),
    Invariant(
        "vouchers", "Every paid unit of a sale that gives codes has one, nothing else has any, and none can lack one."
    ),
    Invariant("line", "Everyone served by a line has their order, and no one was called before a better place."),
    Invariant(
        "progress",
        "Nothing waits for long: entries, releases, unpaid orders that are due, units that somebody in line waits for.",
        safety=False,
    ),
)
ALL = tuple(invariant.name for invariant in INVARIANTS)
# Those that need a comparison of all orders, in whole or in part.
COMPARED = tuple(name for name in ALL if name not in ("stock", "epoch", "line", "progress"))
SAFETY = frozenset(invariant.name for invariant in INVARIANTS if invariant.safety)
# Those that are compared with the gate and cannot be judged without it.
OF_GATE = ("stock", "items", "buyers", "epoch", "admission", "give_back", "lost", "queue")
