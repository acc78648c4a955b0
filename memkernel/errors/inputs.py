"""A value that no store accepts."""

from __future__ import annotations

from memkernel.errors.root import MemkernelError


class InvalidInputError(MemkernelError, ValueError):
    """A value is malformed, of the wrong type, or beyond a limit."""


class InvalidPathError(InvalidInputError):
    """A path breaks the rules of CONTRACT B.5."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path!r} is not a memory path: {reason}", hint="A path looks like /notes/todo.md.")
        self.path, self.reason = path, reason


class InvalidContentError(InvalidInputError):
    """A content is no UTF-8 text, or too large."""

    def __init__(self, reason: str, *, hint: str = "A memory is UTF-8 text.") -> None:
        super().__init__(reason, hint=hint)
        self.reason = reason


class ContentTooLargeError(InvalidContentError):
    """A content has more bytes of UTF-8 than a memory may hold."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"{size_bytes:,} bytes, the limit is {limit_bytes:,}", hint="Split it into several memories.")
        self.size_bytes, self.limit_bytes = size_bytes, limit_bytes


class InvalidPageError(InvalidInputError):
    """A page token is garbage, or belongs to another listing."""

    def __init__(self) -> None:
        super().__init__("the page token does not belong to this listing", hint="Start again without a page token.")


class QueryError(InvalidInputError):
    """SQL that cannot be run: its syntax, a name, a type, or more memory than it may use.

    `line` and `column` are 1-based, and None where DuckDB does not say.
    """

    def __init__(self, reason: str, *, line: int | None = None, column: int | None = None, hint: str = "") -> None:
        where = "" if line is None else f" (line {line}, column {column})"
        super().__init__(reason + where, hint=hint)
        self.line, self.column = line, column
