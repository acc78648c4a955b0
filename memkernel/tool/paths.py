"""A path as the model wrote it -> MemoryPath, or the sentence that refuses it (CONTRACT A.5)."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote

from memkernel.errors import InvalidPathError, MemoryToolError
from memkernel.paths import MAX_PATH_BYTES, check_path

ROOT: Final = "/memories"

DotDot = Literal["resolve", "reject"]

_SHOWN_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class MemoryPath:
    """A checked path of the memory tool.

    `path` is normalised: `/memories` or `/memories/a/b.md`, with neither `.`, `..` nor empty segments, in
    Unicode normal form C. `spelling` is what the caller wrote; every answer echoes it.
    """

    path: str
    spelling: str

    @property
    def is_root(self) -> bool:
        return self.path == ROOT


def parse(spelling: str, dotdot: DotDot = "resolve") -> MemoryPath:
    """The place that a spelling names.

    Args:
        spelling: text without lone surrogates.
        dotdot: whether `..` is resolved where it stays below the root, or always refused.

    Raises:
        MemoryToolError: another root, a way out, or a path that no store accepts (CONTRACT B.5).
    """
    if spelling != ROOT and not spelling.startswith(ROOT + "/"):
        raise MemoryToolError(f"Path must start with /memories, got: {spelling}")
    if "\0" in spelling:
        raise invalid(spelling, "it holds U+0000")
    segments = _resolve(spelling, dotdot)
    if not segments:
        return MemoryPath(ROOT, spelling)
    store_path = unicodedata.normalize("NFC", "/" + "/".join(segments))
    try:
        check_path(store_path)
    except InvalidPathError as error:
        raise invalid(spelling, error.reason) from None
    return MemoryPath(ROOT + store_path, spelling)


def _resolve(spelling: str, dotdot: DotDot) -> list[str]:
    """The segments below the root, after `.`, `..` and `//` are worked out on the text alone."""
    # The first two pieces are the empty one before the leading slash and the root's own name.
    pieces = spelling.split("/")[1:]
    segments: list[str] = []
    for piece in pieces:
        if piece in ("", "."):
            continue
        if piece != "..":
            segments.append(piece)
        elif segments:
            segments.pop()
        else:
            raise _escape(spelling)
    if not segments or segments[0] != ROOT[1:]:
        raise _escape(spelling)
    if "%" in spelling or "\\" in spelling:
        _refuse_disguises(spelling, pieces)
    if dotdot == "reject" and ".." in pieces:
        raise invalid(spelling, "it has a .. segment")
    return segments[1:]


def _refuse_disguises(spelling: str, pieces: list[str]) -> None:
    """Percent codes and backslashes are ordinary characters, unless some reader could make a way out of them."""
    for piece in pieces:
        if piece in (".", ".."):
            continue
        # Longer ones are refused anyway, and decoding until nothing changes takes quadratic time.
        if len(piece) > MAX_PATH_BYTES:
            raise invalid(spelling, f"it has more than {MAX_PATH_BYTES:,} bytes")
        plain, decoded = piece.replace("\\", "/"), _decode(piece).replace("\\", "/")
        if decoded.count("/") > plain.count("/") or not {".", ".."}.isdisjoint(decoded.split("/")):
            raise _escape(spelling)


def _decode(text: str) -> str:
    while (decoded := unquote(text)) != text:
        text = decoded
    return text


def _escape(spelling: str) -> MemoryToolError:
    return MemoryToolError(f"Path {spelling} would escape /memories directory")


def invalid(spelling: str, reason: str) -> MemoryToolError:
    """The refusal of a path that no store accepts."""
    return MemoryToolError(f"Invalid path {shown(spelling)}: {reason}")


def shown(text: str) -> str:
    """A text for the inside of a sentence: printable, and not endless."""
    short = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in short)
