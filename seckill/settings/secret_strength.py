"""How hard a secret is to guess for an attacker who knows how people make them up.

People repeat, count, follow the rows of a keyboard and use words. What follows from what stands before it is hardly a
secret, so only the rest counts in full. It is an estimate, there to refuse what stands in every list of guesses.
"""

import math
import re
import string

_RUN_MIN = 4  # shorter ones turn up in random text
_LANGUAGE_MIN = 5
_ROWS = (
    *("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "azertyuiop", "yxcvbnm"),
    # Columns, one after the other.
    *("1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p", "qazwsxedcrfvtgbyhnujmikolp"),
)
_ROWS_BOTH_WAYS = tuple(way for row in _ROWS for way in (row, row[::-1]))
# What people write where a secret is asked for. Others are caught by being language, which is worth less than chance.
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
_WORD_CHARS_MAX = max(map(len, _WORDS))
_LEET = str.maketrans("013457$@!", "oieastsai")
_BITS = {"repeated": 5.0, "run": 7.0, "word": 7.0, "year": 5.0, "language": 2.3, "separator": 1.0}
# Letters of one case in a row, or short words with something between them.
_LANGUAGE = re.compile(
    rf"[A-Z]?[a-z]{{{_LANGUAGE_MIN - 1},}}|[A-Z]{{{_LANGUAGE_MIN},}}|(?<![^\W_])[A-Z]?[a-z]+(?![^\W_])"
)
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_SEPARATORS = "-_. "
_IDEOGRAPHS = 4096  # in common use
_ALPHABETS = (string.digits, string.ascii_lowercase, string.ascii_uppercase, string.punctuation + " ")


def bits(text: str) -> float:
    """About how many guesses it takes, as a power of two."""
    plain = text.lower()
    in_language = {place for found in _LANGUAGE.finditer(text) for place in range(*found.span())}
    total, place = 0.0, 0
    chance = _bits_of_a_character(text)
    while place < len(text):
        kind, length = _foreseen(plain, place)
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
    if set(text) <= set(string.hexdigits.lower()):
        return math.log2(10 if text.isdigit() else 16)
    size = sum(len(alphabet) for alphabet in _ALPHABETS if set(alphabet) & set(text))
    return math.log2(size if text.isascii() else _IDEOGRAPHS)


def _foreseen(plain: str, place: int) -> tuple[str, int]:
    """What is to be expected here, and for how many characters; otherwise one character of no kind."""
    lengths = {"repeated": _repeated(plain, place), "run": _run(plain, place), "word": _word(plain, place)}
    lengths["year"] = 4 if _YEAR.match(plain, place) else 0
    kind = max(lengths, key=lengths.__getitem__)
    return (kind, lengths[kind]) if lengths[kind] else ("", 1)


def _repeated(plain: str, place: int) -> int:
    """The longest text from here on that began earlier, perhaps just one character before."""
    length = 0
    while place + length < len(plain) and plain.find(plain[place : place + length + 1], 0, place + length) >= 0:
        length += 1
    return length if length >= _RUN_MIN else 0


def _run(plain: str, place: int) -> int:
    longest = 0
    for step in (-1, 0, 1):
        end = place + 1
        while end < len(plain) and ord(plain[end]) - ord(plain[end - 1]) == step:
            end += 1
        longest = max(longest, end - place)
    for row in _ROWS_BOTH_WAYS:
        at = row.find(plain[place])
        length = 0
        while at >= 0 and place + length < len(plain) and row[at + length : at + length + 1] == plain[place + length]:
            length += 1
        longest = max(longest, length)
    return longest if longest >= _RUN_MIN else 0


def _word(plain: str, place: int) -> int:
    for length in range(min(_WORD_CHARS_MAX, len(plain) - place), 2, -1):
        written = plain[place : place + length]
        if written in _WORDS or written.translate(_LEET) in _WORDS:
            return length
    return 0
