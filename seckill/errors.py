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
└── NotPossible            an operator's request that the state of the sale does not allow
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


class NotPossible(SeckillError):
    pass
