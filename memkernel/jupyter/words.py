"""The words of a magic's line: split them, quote one back, and find the one that is being typed.

A quote opens where a word begins, or right after `:` or `=`, and closes where a word may end; any other
quote is an ordinary character, and so is one without a partner. So `/it's.md` and `"/my notes/it's.md"` are
both the right file (fault 42). Outside quotes a backslash keeps a space, a quote or a backslash as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_QUOTES: Final = frozenset("'\"")
_OPENS_AFTER: Final = frozenset(":=")
_CLOSES_BEFORE: Final = frozenset(":=@")
_ESCAPED_IN_DOUBLE: Final = re.compile(r'\\(["\\])')


@dataclass(frozen=True, slots=True)
class Word:
    """A word as it is meant, and where it stands in the line as it was typed."""

    text: str
    start: int
    end: int


def split(line: str) -> list[str]:
    """The words of a line, without their quotes and escapes."""
    return [word.text for word in _words(line)]


def quote(text: str) -> str:
    """The text as one word of a line; `split` gives it back."""
    return "".join(_escape(text, position) for position in range(len(text))) or '""'


def quote_like(text: str, typed: str, *, closed: bool = True) -> str:
    """The text as one word, in the manner of quoting that somebody began to type it in."""
    mark = typed[:1]
    if mark not in _QUOTES or mark in text or "\\" in text:
        return quote(text)
    return f"{mark}{text}{mark if closed else ''}"


def unfinished(line: str) -> tuple[list[str], str]:
    """The finished words of a line that is being typed, and the last one as it stands there, quotes included."""
    words = _words(line)
    start = _open_word(line, words)
    if start is None:
        start = words[-1].start if words and words[-1].end == len(line) else len(line)
    return [word.text for word in words if word.start < start], line[start:]


def meant(typed: str) -> str:
    """What a word that is still being typed means so far."""
    for position in range(len(typed)):
        if _may_open(typed, 0, position) and _closing(typed, position) is None:
            typed += typed[position]
            break
    return "".join(split(typed))


def _words(line: str) -> list[Word]:
    words: list[Word] = []
    position = _skip_space(line, 0)
    while position < len(line):
        words.append(_read_word(line, position))
        position = _skip_space(line, words[-1].end)
    return words


def _skip_space(line: str, position: int) -> int:
    while position < len(line) and line[position].isspace():
        position += 1
    return position


def _read_word(line: str, start: int) -> Word:
    position, parts = start, list[str]()
    while position < len(line) and not line[position].isspace():
        closing = _closing(line, position) if _may_open(line, start, position) else None
        if closing is not None:
            parts.append(_inside(line[position + 1 : closing], line[position]))
            position = closing + 1
        else:
            escaped = _escapes(line, position)
            parts.append(line[position + escaped])
            position += 1 + escaped
    return Word("".join(parts), start, position)


def _escapes(line: str, position: int) -> bool:
    following = line[position + 1 : position + 2]
    return line[position] == "\\" and (following.isspace() or following in {"'", '"', "\\"})


def _escape(text: str, position: int) -> str:
    character = text[position]
    needed = character.isspace() or _may_open(text, 0, position) or character == "\\"
    return f"\\{character}" if needed else character


def _may_open(line: str, start: int, position: int) -> bool:
    return line[position] in _QUOTES and (position == start or line[position - 1] in _OPENS_AFTER)


def _closing(line: str, opened: int) -> int | None:
    """Where the quote opened there closes, if it does."""
    mark, position = line[opened], opened + 1
    while position < len(line):
        if mark == '"' and _ESCAPED_IN_DOUBLE.match(line, position):
            position += 2
            continue
        if line[position] == mark and _may_end(line, position + 1):
            return position
        position += 1
    return None


def _may_end(line: str, position: int) -> bool:
    return position == len(line) or line[position].isspace() or line[position] in _CLOSES_BEFORE


def _inside(text: str, mark: str) -> str:
    return _ESCAPED_IN_DOUBLE.sub(r"\1", text) if mark == '"' else text


def _open_word(line: str, words: list[Word]) -> int | None:
    """Where the last word begins that opens a quote and does not close it."""
    for word in reversed(words):
        for position in range(word.start, word.end):
            if _may_open(line, word.start, position) and _closing(line, position) is None:
                return word.start
    return None
