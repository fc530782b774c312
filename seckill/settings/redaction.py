"""Keeps secrets out of whatever is shown: logs, error messages, `doctor`."""

import re


class Secret:
    """Holds a secret so that printing, logging or formatting anything that contains it does not reveal it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__


# Every repetition is bounded, because what is searched may come from outside. A password may hold an `@` or a
# `/` that should have been escaped, so everything up to the last `@` counts as password.
_CREDENTIALS = re.compile(r"""://([^\s:/@"'<>]{0,64}):([^\s"'<>]{1,256})@""")
_QUERY_SECRET = re.compile(
    r"""([?&;](?:\w{0,32}(?:token|secret|passw(?:or)?d)|(?:api_|admin_)?key)=)[^\s&;#"'<>]+""", re.IGNORECASE
)
# At least eight characters, to leave English words alone; no credential is shorter.
_AUTHORIZATION = re.compile(r"\b(bearer|basic)(\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
_JWT = re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]*\.[\w-]*")


def redact_url(text: str) -> str:
    """The same text with `***` for every password in a URL."""
    return _QUERY_SECRET.sub(r"\1***", _CREDENTIALS.sub(r"://\1:***@", text))


def redact(text: str) -> str:
    """`redact_url`, and bearer tokens too."""
    return _JWT.sub("***", _AUTHORIZATION.sub(r"\1\2***", redact_url(text)))


_SECRET_WORDS = (
    "token",
    "authorization",
    "secret",
    "password",
    "passwd",
    "cookie",
    "admin_key",
    "api_key",
    "credential",
    "private_key",
)


def names_a_secret(name: str) -> bool:
    """Errs on the safe side: even a count of tokens is hidden."""
    plain = name.lower().replace("-", "_")
    return any(word in plain for word in _SECRET_WORDS)
