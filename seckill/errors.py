"""Errors are for broken things. A refusal ("sold out") is a value, see `domain/outcome.py`.

SeckillError
├── SettingsError          the configuration is wrong; lists everything that is
├── StartError             something needed for the start is missing, taken or unsuitable
├── GateError              the gate cannot do its work
│   ├── GateUnavailable    …and the call certainly changed nothing
│   └── GateUnclear        …and the call may or may not have been carried out
├── TransportUnavailable   the order streams cannot be reached
├── LedgerError
│   ├── LedgerUnavailable  the database is away or busy: wait and try again
│   ├── LedgerUnsuitable   the database is there, but a person has to mend it: rights, password, name
│   └── LedgerRefused      the database is there and says no: trying again will not help
│       └── EpochOver      …and never will say yes: the gate has been rebuilt without this order
├── NotGenuine             a payment callback that is not signed as it should be
├── NotUnderstood          a genuine payment callback that makes no sense
├── ProviderUnavailable    the payment provider cannot be reached or says no: try again later
│   └── RefundPending      …no: it has begun a refund, and is to be asked later whether it is done
├── RefundRefused          the payment provider will not make a refund: people have to
├── CheckoutRefused        the payment provider does not take this payment: people have to look into it
└── NotPossible            an operator's request that the state of the sale does not allow
    ├── ExternalIdTaken    …because another sale has the shop's id that it is to have
    ├── NotOfThatGroup     …because it is not like the sales whose limit it is to share
    ├── CodesMissing       …because the sale gives codes and has too few
    └── UploadGivenUp      …because nothing was heard of the upload for too long
"""


class SeckillError(Exception):
    """The message is one sentence that says what to do."""


class SettingsError(SeckillError):
    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class StartError(SeckillError):
    pass


class GateError(SeckillError):
    pass


class GateUnavailable(GateError):
    pass


class GateUnclear(GateError):
    pass


class TransportUnavailable(SeckillError):
    pass


class LedgerError(SeckillError):
    pass


class LedgerUnavailable(LedgerError):
    pass


class LedgerUnsuitable(LedgerError, StartError):
    pass


class LedgerRefused(LedgerError):
    pass


class EpochOver(LedgerRefused):
    pass


class NotGenuine(SeckillError):
    pass


class NotUnderstood(SeckillError):
    pass


class ProviderUnavailable(SeckillError):
    pass


class RefundPending(ProviderUnavailable):
    pass


class RefundRefused(SeckillError):
    pass


class CheckoutRefused(SeckillError):
    pass


class NotPossible(SeckillError):
    pass


class ExternalIdTaken(NotPossible):
    def __init__(self, sale_id: int) -> None:
        super().__init__("Another sale that is on or to come has this external_id: close that one, or give another id.")
        self.sale_id = sale_id  # of that other sale


class NotOfThatGroup(NotPossible):
    """A sale cannot share the limit of those that it names."""

    def __init__(self, field: str, says: str) -> None:
        super().__init__(f"{field} {says}.")
        self.field = field
        self.says = says


class CodesMissing(NotPossible):
    def __init__(self, missing: int) -> None:
        super().__init__(f"The sale gives a code with each unit, and {missing} codes are missing: upload them first.")
        self.missing = missing


class UploadGivenUp(NotPossible):
    def __init__(self) -> None:
        super().__init__("The upload was silent for too long, so it was given up: upload all of it again.")
