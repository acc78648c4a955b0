"""What a directory holds -> the tool's listing, two levels deep (CONTRACT A.6, A.7). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from memkernel.tool.words import SdkWords

DIRECTORY_BYTES: Final = 4_096
"""The size that a directory is shown with: one in a database has none of its own (CONTRACT 0.3, row 13)."""


def render(spelling: str, entries: Iterable[tuple[str, int]], words: SdkWords, *, cut: int = 0) -> str:
    """The listing of a directory.

    Args:
        spelling: the directory as the caller wrote it.
        entries: path and size in bytes of every memory below it, at any depth and in any order.
        words: the profile.
        cut: how many characters of each path lead to the directory, the slash after it included.
    """
    header = [words.listing_header(spelling), f"{words.size(DIRECTORY_BYTES)}\t{spelling}"]
    return "\n".join([*header, *_rows(f"{spelling}/", entries, words, cut)])


def _rows(above: str, entries: Iterable[tuple[str, int]], words: SdkWords, cut: int) -> Iterator[str]:
    """One row an item, on two levels, depth first."""
    size, hidden = words.size, words.hidden_names
    directory = f"{size(DIRECTORY_BYTES)}\t{above}"
    outer = inner = ""
    for path, size_bytes in sorted(entries, key=_depth_first):
        below = path[cut:]
        head, slash, rest = below.partition("/")
        if head[:1] in ("", ".") or head in hidden:
            continue
        if not slash:
            yield f"{size(size_bytes)}\t{above}{below}"
            continue
        if head != outer:
            outer, inner = head, ""
            yield f"{directory}{head}/"
        name, slash, _ = rest.partition("/")
        if name.startswith(".") or name in hidden:
            continue
        if not slash:
            yield f"{size(size_bytes)}\t{above}{below}"
        elif name != inner:
            inner = name
            yield f"{directory}{head}/{name}/"


def _depth_first(entry: tuple[str, int]) -> str:
    """Sorts by code point directory by directory: no name holds a NUL, which comes before every character."""
    return entry[0].replace("/", "\0")
