"""Contents (CONTRACT B.5): UTF-8, limited in bytes, named by their SHA-256."""

from __future__ import annotations

import hashlib

from memkernel.errors import ContentTooLargeError, InvalidContentError


def encode(content: str | bytes, limit_bytes: int) -> bytes:
    """The content as bytes of UTF-8, exactly as given.

    Raises:
        InvalidContentError: a lone surrogate, or bytes that are not UTF-8.
        ContentTooLargeError: more than `limit_bytes` bytes.
    """
    encoded = _encode_text(content) if isinstance(content, str) else _check_utf8(content)
    if len(encoded) > limit_bytes:
        raise ContentTooLargeError(len(encoded), limit_bytes)
    return encoded


def _encode_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidContentError(f"character {error.start} is a lone surrogate, which UTF-8 cannot hold") from None


def _check_utf8(data: bytes) -> bytes:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise InvalidContentError(f"byte {error.start} is not UTF-8") from None
    return data


def sha256(data: bytes) -> str:
    """The SHA-256 of the bytes, 64 lowercase hex digits."""
    return hashlib.sha256(data).hexdigest()
