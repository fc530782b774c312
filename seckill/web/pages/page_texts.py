"""The texts for the parts of the buyers' pages that the server draws, read from the same files that browsers load."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec

_LINE = re.compile(r'^  (\w+): ("(?:[^"\\]|\\.)*"),$', re.MULTILINE)
_TAGS = {"en": "en", "zh": "zh-CN", "ja": "ja"}
# Without の, ・ and ー, which titles in Chinese have as well.
_KANA = re.compile("[\u3041-\u306d\u306f-\u3096\u30a1-\u30fa\uff66-\uff9d]")
_HAN = re.compile("[\u3400-\u9fff]")


@cache
def texts_in(language: str) -> Mapping[str, str]:
    source = (files("seckill.web") / "static" / "app" / "texts" / f"{language}.js").read_text(encoding="utf-8")
    return {key: msgspec.json.decode(text, type=str) for key, text in _LINE.findall(source)}


def text(language: str, key: str, **values: object) -> str:
    return texts_in(language)[key].format(**values)


def language_of(words: str) -> str:
    """A page is the same for every visitor, so it begins in the language of its goods' description; the browser then
    goes on in the reader's."""
    kana, han = len(_KANA.findall(words)), len(_HAN.findall(words))
    if 4 * kana > han:
        return "ja"
    return "zh" if han else "en"


def tag_of(language: str) -> str:
    return _TAGS[language]
