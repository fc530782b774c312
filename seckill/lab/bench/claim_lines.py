"""Writes the claims of a load into the file that generators read: a path and a token in each line."""

from collections.abc import Sequence
from pathlib import Path

from seckill.lab.bench.tokens import Tokens
from seckill.settings import Settings

# More claims than any of our processes answers in a second, so that no generator runs out of buyers.
CLAIMS_PER_S_MAX = 60_000


def make_tokens(settings: Settings, seconds: float) -> list[str]:
    assert settings.jwt_secret is not None
    tokens = Tokens(settings.jwt_secret)
    return [tokens.of(f"buyer-{number}") for number in range(int(seconds * CLAIMS_PER_S_MAX))]


def write_lines(file: Path, path: str, tokens: Sequence[str]) -> Path:
    file.write_text("".join(f"{path} {token}\n" for token in tokens))
    return file
