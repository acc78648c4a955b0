"""Memory paths (CONTRACT B.5): check a text, compare by whole segments, make a store's mount slug."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from memkernel.errors import InvalidPathError

MAX_PATH_BYTES: Final = 1_024
MAX_SEGMENTS: Final = 20
MOUNT_ROOT: Final = "/mnt/memory"

_MAX_FOLDER_BYTES: Final = 255

_PLAIN: Final = re.compile(r"(?:/[A-Za-z0-9_~@+=,:;!#$&'()\[\]{}^ -][A-Za-z0-9._~@+=,:;!#$&'()\[\]{}^ -]*){1,20}")
_FORBIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs"})
_LINE_SEPARATORS: Final = frozenset({"\u2028", "\u2029"})


def check_path(text: str) -> str:
    """The text, if it is a legal memory path.

    Raises:
        InvalidPathError: with the first rule of CONTRACT B.5 that it breaks.
    """
    # Nearly every path is plain ASCII without a leading dot in a segment: one match settles those.
    if len(text) <= MAX_PATH_BYTES and _PLAIN.fullmatch(text):
        return text
    reason = _broken_rule(text)
    if reason:
        raise InvalidPathError(text, reason)
    return text


def _broken_rule(text: str) -> str | None:
    if not text.startswith("/"):
        return "it must start with /"
    if text == "/":
        return "it is the root, where no memory can be"
    segments = text[1:].split("/")
    if "" in segments:
        return "it has an empty segment"
    if "." in segments or ".." in segments:
        return "it has a . or .. segment"
    if len(segments) > MAX_SEGMENTS:
        return f"it has {len(segments)} segments, the limit is {MAX_SEGMENTS}"
    for character in text:
        if not is_legal_character(character):
            return f"it holds U+{ord(character):04X}"
    if not unicodedata.is_normalized("NFC", text):
        return "it is not in Unicode normal form C"
    size_bytes = len(text.encode())
    if size_bytes > MAX_PATH_BYTES:
        return f"it has {size_bytes:,} bytes, the limit is {MAX_PATH_BYTES:,}"
    return None


def is_legal_character(character: str) -> bool:
    """Whether a path may hold the character: no control or format sign, no line separator."""
    return unicodedata.category(character) not in _FORBIDDEN_CATEGORIES and character not in _LINE_SEPARATORS


def check_prefix(text: str) -> str:
    """The text, if it is `/` or a legal path followed by one `/` (CONTRACT B.8).

    Raises:
        InvalidPathError: it is neither.
    """
    if text == "/":
        return text
    if not text.endswith("/"):
        raise InvalidPathError(text, "a prefix must end with /")
    check_path(text[:-1])
    return text


def ancestors(path: str) -> list[str]:
    """The paths above a path, outermost first: `/a/b/c` gives `/a`, `/a/b`."""
    segments = path.split("/")
    return ["/".join(segments[:count]) for count in range(2, len(segments))]


def overlap(one: str, other: str) -> bool:
    """Whether two paths cannot both exist: equal, or one lies below the other (CONTRACT B.6)."""
    return one == other or one.startswith(other + "/") or other.startswith(one + "/")


def slug(store_name: str) -> str:
    """The name's folder below /mnt/memory (CONTRACT C.5); `""` where no ASCII letter or digit is left."""
    return re.sub(r"[^a-z0-9]+", "-", store_name.lower()).strip("-")


def mount_slug(store_name: str, store_id: str) -> str:
    """The store's folder below `MOUNT_ROOT`: its name's slug; its id's where that is empty, or no folder's name."""
    found = slug(store_name)
    return found if 0 < len(found) <= _MAX_FOLDER_BYTES else slug(store_id)


def in_mount(path: str) -> tuple[str, str] | None:
    """(slug, memory path) of a path as a sandbox names it, `/mnt/memory/SLUG/…`; None for any other path."""
    root = f"{MOUNT_ROOT}/"
    if not path.startswith(root):
        return None
    slug_of_store, _, rest = path.removeprefix(root).partition("/")
    return slug_of_store, f"/{rest}"


def mount_path(store_name: str, store_id: str) -> str:
    """Where a session that attaches the store mounts it (CONTRACT C.5)."""
    return f"{MOUNT_ROOT}/{mount_slug(store_name, store_id)}"
