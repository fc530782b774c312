"""How strong a secret must be, and how hard it is to guess for an attacker who knows how people make them up.

People repeat, count, follow the rows of a keyboard and use words, and they hide that with something between the
characters, or by writing it in hexadecimal or base64. A character that follows from those before it is hardly secret,
so only the others count in full, and of several views of the text the weakest counts. This is an estimate, meant to
refuse secrets that are in every list of guesses.
"""

import base64
import contextlib
import hashlib
import math
import re
import string
from collections.abc import Iterator

SECRET_BYTES_MIN = 32  # as long as the HMAC it keys: RFC 7518, 3.2
ADMIN_KEY_CHARS_MIN = 16
# An attacker with a token can try secrets offline, as fast as they like; the admin key has to be tried here. Random
# text of the least length has more than required: 16 hexadecimal digits 64 bits, 32 characters of base64 nearly 200.
SECRET_BITS_MIN = 72
ADMIN_KEY_BITS_MIN = 36
_TELLTALES = ("secret", "changeme", "changethis", "example", "password", "random", "replace")

_RUN_MIN = 4  # shorter runs occur in random text
_LANGUAGE_MIN = 5
_ROWS = (
    *("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "azertyuiop", "yxcvbnm", "!@#$%^&*()_+"),
    # The columns of a keyboard, one after the other.
    *("1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p", "qazwsxedcrfvtgbyhnujmikolp"),
    # Every row of characters that count up, in the order of their codes.
    "".join(map(chr, range(ord("!"), ord("~") + 1))),
    *("0123456789abcdef", "零一二三四五六七八九十", "我的密码是", "abcdefghijklmnopqrstuvwxyzabc"),
    # Numbers and sentences that everyone knows.
    *("31415926535897932384626433832795028841971", "27182818284590452353602874713526624977572"),
    *("thequickbrownfoxjumpsoverthelazydog", "allworkandnoplaymakesjackadullboy", "correcthorsebatterystaple"),
    *("tobeornottobethatisthequestion", "loremipsumdolorsitametconsecteturadipiscingelit"),
)
_ROWS_BOTH_WAYS = tuple(way for row in _ROWS for way in (row, row[::-1]))
_ROW_STARTS = frozenset(row[at : at + _RUN_MIN] for row in _ROWS_BOTH_WAYS for at in range(len(row) - _RUN_MIN + 1))
# Words that people write where a secret is asked for. Others are recognised as language, which counts less than random
# text.
_WORDS = frozenset(
    """
    access account admin administrator alpha apple april august auth autumn bearer beta buyer changeit changeme
    charlie coupon december default demo dragon dummy enter example february flash foobar football friday guest
    hello hidden hunter iloveyou insecure internal january july june jwt key keyboard letmein local localhost login
    manager march market master monday money monkey mustang november october office online operator orders pass
    passphrase passwd password payment please princess private prod production public random replace root sale sales
    sample saturday seckill secret secure security september server service session shadow shop sign signing spring
    staging store string summer sunday sunshine super superman supersecret system temp temporary test testing
    thursday token trustno1 tuesday unsafe user value voucher webshop wednesday welcome winter your
    """.split()  # noqa: SIM905 (a list of a hundred quoted words is harder to read)
)
_WORD_CHARS_MIN, _WORD_CHARS_MAX = min(map(len, _WORDS)), max(map(len, _WORDS))
_WORD_STARTS = frozenset(word[:_WORD_CHARS_MIN] for word in _WORDS)
_LEET = str.maketrans("013457$@!", "oieastsai")
_BITS = {"repeated": 5.0, "run": 7.0, "word": 7.0, "year": 5.0, "date": 12.0, "language": 2.0, "separator": 1.0}
# Lower-case letters in a row, words separated by capitals, and words with something beside them.
_LANGUAGE = re.compile(
    rf"(?:[A-Z][a-z]{{2,}}(?:[A-Z][a-z]?)?){{2,}}|[A-Z]?[a-z]{{{_LANGUAGE_MIN - 1},}}"
    rf"|\b[A-Z]{{{_LANGUAGE_MIN},}}|[A-Z]{{{_LANGUAGE_MIN},}}\b|(?<![^\W_])(?:[A-Z]?[a-z]+|[A-Z]+)(?![^\W_])"
)
_DATE = re.compile(r"(?:19|20)[0-9]{2}([-_./]?)(?:0[1-9]|1[0-2])\1(?:[0-2][0-9]|3[01])")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_SEPARATORS = "-_. "
_WITHOUT_SEPARATORS = str.maketrans("", "", _SEPARATORS)
_IDEOGRAPHS = 4096  # in common use
_HEXADECIMAL = frozenset(string.hexdigits.lower())
_ALPHABETS = (string.digits, string.ascii_lowercase, string.ascii_uppercase, string.punctuation + " ")
_DIGESTS = {16: "md5", 20: "sha1", 28: "sha224", 32: "sha256", 48: "sha384", 64: "sha512"}  # by the bytes they have
_ALSO_HASHED = ("", "123456", "12345678", "123456789", "1234567890", "qwerty", "abc", "abc123", "hello world")


def can_be_guessed(text: str, bits_min: int) -> bool:
    return any(word in text.lower() for word in _TELLTALES) or bits(text) < bits_min


def bits(text: str) -> float:
    """Estimates how many guesses it takes, as a power of two."""
    bare = text.translate(_WITHOUT_SEPARATORS)
    by_turns = bare[::2] + bare[1::2]  # 00112233, a1b2c3d4: two rows that take turns
    least = min(_bits_of(text), _bits_of(by_turns, language=False))
    if len(bare) < len(text):
        least = min(least, _bits_of(bare))
    for decoded in _decoded(text):
        if _is_known_digest(decoded):
            return 0.0
        if decoded.isascii() and (hidden := decoded.decode()).isprintable():
            least = min(least, bits(hidden))
    return least


def _decoded(text: str) -> Iterator[bytes]:
    """Yields the decoded bytes, if the text is hexadecimal or base64."""
    with contextlib.suppress(ValueError):
        yield bytes.fromhex(text)
    padded = text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)
    with contextlib.suppress(ValueError):
        yield base64.b64decode(padded.replace("-", "+").replace("_", "/"), validate=True)


def _is_known_digest(found: bytes) -> bool:
    """Whether it is the digest of a word that people try first."""
    name = _DIGESTS.get(len(found))
    return name is not None and any(
        hashlib.new(name, word.encode(), usedforsecurity=False).digest() == found for word in (*_WORDS, *_ALSO_HASHED)
    )


def _bits_of(text: str, *, language: bool = True) -> float:
    plain = text.lower()
    words = _LANGUAGE.finditer(text) if language and not set(text) <= _HEXADECIMAL else ()
    in_language = {place for found in words for place in range(*found.span())}
    foreseen = _places(plain)
    total, place = 0.0, 0
    chance = _bits_of_a_character(text)
    while place < len(text):
        kind, length = _foreseen(plain, place) if place in foreseen else ("", 1)
        if kind:
            total += _BITS[kind]
        elif place in in_language:
            total += _BITS["language"]
        elif text[place] in _SEPARATORS:
            total += _BITS["separator"]
        else:
            total += chance
        place += length
    return total


def _bits_of_a_character(text: str) -> float:
    if set(text) <= _HEXADECIMAL:
        return math.log2(10 if text.isdigit() else 16)
    size = sum(len(alphabet) for alphabet in _ALPHABETS if set(alphabet) & set(text))
    return math.log2(size if text.isascii() else _IDEOGRAPHS)


def _places(plain: str) -> set[int]:
    """Returns the places where something predictable may begin: random text has few, so it takes little time."""
    places = {found.start() for found in _YEAR.finditer(plain)}
    spelled = plain.translate(_LEET)
    seen: set[str] = set()
    for place in range(len(plain)):
        start = plain[place : place + _RUN_MIN]
        words = {plain[place : place + _WORD_CHARS_MIN], spelled[place : place + _WORD_CHARS_MIN]}
        if start in seen or start in _ROW_STARTS or words & _WORD_STARTS:
            places.add(place)
        seen.add(start)
    return places


def _foreseen(plain: str, place: int) -> tuple[str, int]:
    """Returns what is predictable here, and for how many characters; otherwise one character of no kind."""
    lengths = {"repeated": _repeated(plain, place), "run": _run(plain, place), "word": _word(plain, place)}
    date, year = _DATE.match(plain, place), _YEAR.match(plain, place)
    lengths |= {"date": len(date[0]) if date else 0, "year": len(year[0]) if year else 0}
    kind = max(lengths, key=lengths.__getitem__)
    return (kind, lengths[kind]) if lengths[kind] else ("", 1)


def _repeated(plain: str, place: int) -> int:
    """Returns the length of the longest text from here on that occurred before, perhaps just one character earlier."""
    length = 0
    while place + length < len(plain) and plain.find(plain[place : place + length + 1], 0, place + length) >= 0:
        length += 1
    return length if length >= _RUN_MIN else 0


def _run(plain: str, place: int) -> int:
    longest = 0
    for row in _ROWS_BOTH_WAYS:
        while place + longest < len(plain) and plain[place : place + longest + 1] in row:
            longest += 1
    return longest if longest >= _RUN_MIN else 0


def _word(plain: str, place: int) -> int:
    for length in range(min(_WORD_CHARS_MAX, len(plain) - place), _WORD_CHARS_MIN - 1, -1):
        written = plain[place : place + length]
        if written in _WORDS or written.translate(_LEET) in _WORDS:
            return length
    return 0
