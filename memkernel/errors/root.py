"""The root of the tree, and how an error is shown."""

from __future__ import annotations

import traceback
from typing import ClassVar


class MemkernelError(Exception):
    """The root of the tree."""

    show_traceback: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def lines(self) -> list[str]:
        """What a person reads: the error and, where there is one, the way out."""
        head = f"{type(self).__name__}: {self}"
        return [head, self.hint] if self.hint else [head]

    def _render_traceback_(self) -> list[str]:
        """IPython's protocol: these lines in place of its own traceback."""
        return traceback.format_exception(self) if MemkernelError.show_traceback else self.lines()

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's own way calls __init__ with the message alone: from a worker process no error would come back.
        return _revive, (type(self), str(self), self.__dict__)


def _revive(kind: type[MemkernelError], message: str, facts: dict[str, object]) -> MemkernelError:
    error = kind.__new__(kind, message)
    error.__dict__.update(facts)
    return error
