"""The six commands of memory_20250818: what a back end must do, and the check of what the model sent (CONTRACT A.2).

A back end of your own subclasses `MemoryBackend`: six methods that get checked arguments, and answer with
the text for the model.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final, cast

from memkernel.errors import MemoryToolError
from memkernel.models import Cause
from memkernel.tool import paths
from memkernel.tool.paths import DotDot, MemoryPath

_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_LARGEST_NUMBER: Final = 10**18
_MISSING: Final = object()


class MemoryBackend(ABC):
    """A place where the tool's `/memories` tree is kept.

    Each method answers with the text that the model is sent. What the model can act on is a
    `MemoryToolError` with one sentence; any other exception is for the person, and the model is only told
    that memory is unavailable. `path.path` is normalised, `path.spelling` is for echoes (CONTRACT 0.3, row 21).
    """

    dotdot: DotDot = "resolve"
    """Whether paths may hold `..` that stay below the root."""

    cause: Cause | None = None
    """The tool call that is being answered. The agent loop sets it before each call."""

    @abstractmethod
    def view(self, path: MemoryPath, view_range: tuple[int, int] | None = None) -> str:
        """Show a file with line numbers, or list a directory. `view_range` is 1-based, inclusive, -1 the end."""

    @abstractmethod
    def create(self, path: MemoryPath, file_text: str) -> str:
        """Create a file, and the directories above it."""

    @abstractmethod
    def str_replace(self, path: MemoryPath, old_str: str, new_str: str) -> str:
        """Replace the only occurrence of `old_str` in a file."""

    @abstractmethod
    def insert(self, path: MemoryPath, insert_line: int, insert_text: str) -> str:
        """Insert text into a file after a line; 0 is the top."""

    @abstractmethod
    def delete(self, path: MemoryPath) -> str:
        """Delete a file, or a directory with everything below it."""

    @abstractmethod
    def rename(self, old_path: MemoryPath, new_path: MemoryPath) -> str:
        """Rename or move a file or a directory; never onto something that exists."""

    def clear(self) -> None:
        """Delete everything. No command of the model's: `clear_all_memory` of the SDK's tool calls it."""
        raise NotImplementedError(f"{type(self).__name__} does not define clear")


def run(backend: MemoryBackend, command: object) -> str:
    """Check the input of a tool call, and carry it out.

    Args:
        backend: where the memories are.
        command: what the model sent: `{"command": "view", "path": …}`. Keys that are not known are ignored.

    Raises:
        MemoryToolError: the input is malformed, or the back end refuses it.
        TypeError: the back end answered with something else than a text.
    """
    if not isinstance(command, dict):
        raise _malformed(f"it must be an object with a command, not {_kind(command)}")
    fields = cast("dict[str, object]", command)
    answer = _carry_out(backend, fields)
    if not isinstance(answer, str):
        method = f"{type(backend).__name__}.{fields['command']}"
        raise TypeError(f"{method} returned {type(answer).__name__}; the answer for the model is a str")
    return answer


def _carry_out(backend: MemoryBackend, fields: Mapping[str, object]) -> object:
    """What the back end answers; one of a person's own may break its word."""
    match _text(fields, "command", "one of view, create, str_replace, insert, delete, rename"):
        case "view":
            return backend.view(_path(fields, "path", backend), _view_range(fields))
        case "create":
            return backend.create(_path(fields, "path", backend), _text(fields, "file_text"))
        case "str_replace":
            return backend.str_replace(
                _path(fields, "path", backend), _text(fields, "old_str"), _text_or_nothing(fields, "new_str")
            )
        case "insert":
            return backend.insert(
                _path(fields, "path", backend), _number(fields, "insert_line"), _text(fields, "insert_text")
            )
        case "delete":
            return backend.delete(_path(fields, "path", backend))
        case "rename":
            return backend.rename(_path(fields, "old_path", backend), _path(fields, "new_path", backend))
        case unknown:
            raise MemoryToolError(f"Unknown command: {paths.shown(unknown)}")


def _path(fields: Mapping[str, object], name: str, backend: MemoryBackend) -> MemoryPath:
    return paths.parse(_text(fields, name), backend.dotdot)


def _text(fields: Mapping[str, object], name: str, expected: str = "a string") -> str:
    value = fields.get(name, _MISSING)
    if not isinstance(value, str):
        raise _wrong(name, value, expected)
    if not value.isascii():
        _refuse_surrogates(name, value)
    return value


def _text_or_nothing(fields: Mapping[str, object], name: str) -> str:
    return "" if fields.get(name) is None else _text(fields, name)


def _refuse_surrogates(name: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _malformed(f"{name} holds a lone surrogate at character {error.start}") from None


def _number(fields: Mapping[str, object], name: str) -> int:
    value = fields.get(name, _MISSING)
    number = _whole(value)
    if number is None:
        raise _wrong(name, value, "a whole number")
    return number


def _whole(value: object) -> int | None:
    """The number, if it is a whole one or the text of one; a bool is none."""
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    if type(value) is int and abs(value) < _LARGEST_NUMBER:
        return value
    return None


def _view_range(fields: Mapping[str, object]) -> tuple[int, int] | None:
    """The range, if there are two numbers; a list of any other length counts as none, as in the SDK."""
    value = fields.get("view_range")
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise _wrong("view_range", value, "two whole numbers, [start, end]")
    ends = cast("list[object]", value)
    if len(ends) != 2:
        return None
    start, end = _whole(ends[0]), _whole(ends[1])
    if start is None or end is None:
        raise _malformed("view_range must be two whole numbers, [start, end]")
    return start, end


def _malformed(reason: str) -> MemoryToolError:
    return MemoryToolError(f"invalid memory tool input: {reason}")


def _wrong(name: str, value: object, expected: str) -> MemoryToolError:
    if value is _MISSING:
        return _malformed(f"{name} is missing, it must be {expected}")
    return _malformed(f"{name} must be {expected}, not {_kind(value)}")


def _kind(value: object) -> str:
    """The value, as the model would recognise it in the JSON that it sent."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f'"{paths.shown(value)}"'
    if isinstance(value, int | float):
        return "so large a number" if abs(value) >= _LARGEST_NUMBER else str(value)
    return "an object" if isinstance(value, dict) else "an array"
