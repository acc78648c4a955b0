"""What a person looks for in a store: lines that an expression matches, and paths that look like one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from memkernel.errors import InvalidInputError
from memkernel.models import GrepMatch


@dataclass(frozen=True, slots=True)
class Expression:
    """A regular expression (Python's `re`) that lines are searched for.

    Attributes:
        search: whether it is in a line.
        plain: bytes that a text must hold to match; None where that is not known.
    """

    search: Callable[[str], re.Match[str] | None]
    plain: bytes | None

    @classmethod
    def of(cls, pattern: str, *, ignore_case: bool = False) -> Expression:
        """Compile a pattern; plain text finds itself.

        Raises:
            InvalidInputError: it is malformed.
        """
        search = _compiled(pattern, ignore_case)
        return cls(search, pattern.encode() if pattern == re.escape(pattern) and not ignore_case else None)

    def matches(self, contents: Iterable[tuple[str, str]]) -> Iterator[GrepMatch]:
        """The lines of texts that match, each text given with its path."""
        for path, text in contents:
            for number, line in enumerate(text.split("\n"), 1):
                if self.search(line):
                    yield GrepMatch(path, number, line)


def near(path: str, known: Iterable[str]) -> list[str]:
    """At most three of the known paths: those that look like this one."""
    return difflib.get_close_matches(path, list(known), n=3, cutoff=0.7)


def without_last_slash(path: str) -> str:
    """A directory may be written with its last slash, as listings show it."""
    return path[:-1] if path.endswith("/") and path != "/" else path


def _compiled(pattern: str, ignore_case: bool) -> Callable[[str], re.Match[str] | None]:
    if not isinstance(pattern, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # a person's argument
        raise InvalidInputError(f"{pattern!r} is not text", hint="A pattern is a str.")
    try:
        pattern.encode()
        return re.compile(pattern, re.IGNORECASE if ignore_case else 0).search
    except UnicodeEncodeError:
        raise InvalidInputError(f"{pattern!r} holds a lone surrogate, which no memory holds") from None
    except re.error as error:
        raise InvalidInputError(f"{pattern!r} is not a regular expression: {error}") from None
