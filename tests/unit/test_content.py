"""Contents (CONTRACT B.5): bytes of UTF-8, kept exactly, limited in bytes, named by their hash."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.content import encode, sha256
from memkernel.errors import ContentTooLargeError, InvalidContentError

LIMIT = 102_400


@pytest.mark.parametrize(
    "text", ["", "SI", "no end", "a\r\nb\r\n", "\ufeffhello\n", "a\x00b", "e\u0301", "日本語 👩", "\u2028\x85\f"]
)
def test_what_is_written_is_what_is_read(text: str) -> None:
    """Nothing is normalised: no line end (fault 10), no BOM (fault 13), no NUL (fault 14, statement 145)."""
    assert encode(text, LIMIT).decode() == text
    assert encode(text.encode(), LIMIT) == text.encode()


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_a_text_and_its_bytes_are_the_same_content(text: str) -> None:
    assert encode(text, LIMIT) == encode(text.encode(), LIMIT)


def test_f144_the_limit_counts_bytes_not_characters() -> None:
    """Fault 26 as well."""
    assert len(encode("é" * 51_200, LIMIT)) == LIMIT
    assert len(encode("x" * LIMIT, LIMIT)) == LIMIT
    for content in ("x" * (LIMIT + 1), "é" * 51_200 + "x", b"x" * (LIMIT + 1)):
        with pytest.raises(ContentTooLargeError, match="102,401 bytes, the limit is 102,400") as caught:
            encode(content, LIMIT)
        assert (caught.value.size_bytes, caught.value.limit_bytes) == (LIMIT + 1, LIMIT)


def test_the_limit_is_the_callers() -> None:
    assert encode("abc", 3) == b"abc"
    with pytest.raises(ContentTooLargeError):
        encode("abc", 2)


@pytest.mark.parametrize("text", ["\ud800", "ok \udfff", "\udc80abc"])
def test_f146_a_lone_surrogate_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(InvalidContentError, match="lone surrogate") as caught:
        encode(text, LIMIT)
    place = next(index for index, character in enumerate(text) if "\ud800" <= character <= "\udfff")
    assert f"character {place} " in caught.value.reason


@pytest.mark.parametrize("data", [b"\xff", b"ab\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80", b"caf\xe9"])
def test_bytes_that_are_no_utf8_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidContentError, match=r"byte \d+ is not UTF-8"):
        encode(data, LIMIT)


@pytest.mark.parametrize("text", ["", "ascii", "é日👩"])
def test_f142_the_hash_is_that_of_the_bytes(text: str) -> None:
    assert sha256(encode(text, LIMIT)) == hashlib.sha256(text.encode()).hexdigest()
    assert len(sha256(b"")) == 64
