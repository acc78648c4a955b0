"""Page tokens (CONTRACT B.9): `page_` and base64url of JSON, bound to the listing that they came from."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, TypeVar, cast

from memkernel.errors import InvalidPageError
from memkernel.models import Page

T = TypeVar("T")

_PREFIX: Final = "page_"
_MAX_NUMBER: Final = 2**57  # more microseconds than these lead out of PostgreSQL's calendar

Key = str | int
"""A member of the position after which a page begins."""


def binding(route: str, **filters: object) -> str:
    """What a token is bound to: the route, and each filter but `limit`."""
    plain = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in filters.items()}
    text = json.dumps([route, plain], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def token(bound_to: str, position: Sequence[Key]) -> str:
    """The token of the page that begins after a position."""
    text = json.dumps([bound_to, *position], separators=(",", ":"))
    return _PREFIX + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def position(page: object, bound_to: str, *kinds: type) -> tuple[Key, ...] | None:
    """The position that a token holds; None without a token.

    Raises:
        InvalidPageError: it is garbage, or belongs to another listing.
    """
    if page is None:
        return None
    if not isinstance(page, str) or not page.startswith(_PREFIX):
        raise InvalidPageError
    found = _decode(page.removeprefix(_PREFIX))
    if not isinstance(found, list):
        raise InvalidPageError
    bound, *keys = cast(list[Key], found) or [""]
    if bound != bound_to or [type(key) for key in keys] != list(kinds):
        raise InvalidPageError
    if any(isinstance(key, int) and abs(key) > _MAX_NUMBER for key in keys):
        raise InvalidPageError
    return tuple(keys)


def _decode(encoded: str) -> object:
    try:
        padded = encoded + "=" * (-len(encoded) % 4)
        return json.loads(base64.b64decode(padded.encode(), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise InvalidPageError from None


def cut(rows: list[T], limit: int, bound_to: str, key: Callable[[T], Sequence[Key]]) -> Page[T]:
    """A page of rows that were read with one row more than the limit."""
    data = rows[:limit]
    more = len(rows) > limit
    return Page(data, token(bound_to, key(data[-1])) if more else None)
