"""A search for words: what a person typed becomes words, and a text the lines that hold them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

from memkernel.errors import InvalidInputError

MOST_WORDS: Final = 16
EXCERPT_CHARS: Final = 200

_WORD: Final = re.compile(r'"([^"]*)"|(\S+)')
_SCANNED: Final = 10_000
"""Of a text that is all hits, so many are looked at for its best lines."""


def words_of(query: str) -> list[str]:
    """The words of a query, each once; what stands in double quotes is one word with its spaces.

    Raises:
        InvalidInputError: there is none, there are more than `MOST_WORDS`, or no text can hold one.
    """
    if not isinstance(query, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # a person's argument
        raise InvalidInputError(f"{query!r} is not text", hint="A search is a str.")
    found = [quoted or plain for quoted, plain in _WORD.findall(query)]
    words = list(dict.fromkeys(word for word in found if word.strip()))
    if not words:
        raise InvalidInputError("a search needs a word", hint='Words that all have to occur; "two words" are one.')
    if len(words) > MOST_WORDS:
        raise InvalidInputError(f"a search of {len(words)} words; the limit is {MOST_WORDS}")
    return words


def excerpts(text: str, words: Sequence[str], most: int) -> list[tuple[int, str]]:
    """The lines with the most different words, at most so many, in their order: number from 1, and the text.

    Of a line longer than `EXCERPT_CHARS` it is the part around its first word.
    """
    line, counted = 1, 0
    starts: dict[int, int] = {}
    different: dict[int, set[str]] = {}
    for hit in islice(_pattern(words).finditer(text), _SCANNED):
        line += text.count("\n", counted, hit.start())
        counted = hit.start()
        starts.setdefault(line, counted)
        different.setdefault(line, set()).add(hit[0].casefold())
    best = sorted(different, key=lambda number: -len(different[number]))[:most]
    return [(number, _around(text, starts[number])) for number in sorted(best)]


def _around(text: str, hit: int) -> str:
    """The line of a hit, or the part of a long one that is around it."""
    begin, end = text.rfind("\n", 0, hit) + 1, text.find("\n", hit)
    end = len(text) if end < 0 else end
    if end - begin <= EXCERPT_CHARS:
        return text[begin:end]
    first = max(begin, min(hit - EXCERPT_CHARS // 4, end - EXCERPT_CHARS))
    last = first + EXCERPT_CHARS
    return f"{'…' if first > begin else ''}{text[first:last]}{'…' if last < end else ''}"


def spans(text: str, words: Sequence[str]) -> list[tuple[bool, str]]:
    """The text in pieces: whether one is a word that was searched for, and the piece."""
    found: list[tuple[bool, str]] = []
    end = 0
    for hit in _pattern(words).finditer(text):
        found += [(False, text[end : hit.start()]), (True, hit[0])]
        end = hit.end()
    return [(is_hit, piece) for is_hit, piece in [*found, (False, text[end:])] if piece]


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Longer words first, so that none hides behind its own beginning."""
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))), re.IGNORECASE)
