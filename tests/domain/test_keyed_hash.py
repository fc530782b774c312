"""The same as the library's, for keys of every length."""

import hmac

from hypothesis import given
from hypothesis import strategies as st

from seckill.domain.keyed_hash import KeyedHash


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_a_keyed_hash_is_an_hmac(key: bytes, text: bytes) -> None:
    prepared = KeyedHash(key)
    assert prepared.digest(text) == prepared.digest(text) == hmac.digest(key, text, "sha256")
