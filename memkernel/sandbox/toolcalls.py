"""What a model may hand to the sandbox's tools: the inputs of CONTRACT.md E, checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

_LARGEST: Final = 2**53
"""What every JSON reader takes for the same number."""

_Check = Callable[[object], str]
"""What is wrong with a value, as the sentence goes on after its name; "" where nothing is."""


def problem_with(name: str, given: Mapping[str, object]) -> str:
    """What is wrong with a call, for the model; "" where nothing is."""
    fields = _TOOLS.get(name)
    if fields is None:
        return f"{name}: there is no such tool; there are {', '.join(_TOOLS)}"
    for field in given:
        if field not in fields:
            return f"{name}: {field} is no input; there are {', '.join(fields)}"
    for field, (is_required, check) in fields.items():
        value = given.get(field)
        if value is None and is_required:
            return f"{name}: {field} is required"
        if value is not None and (problem := check(value)):
            return f"{name}: {field} {problem}"
    return ""


def _text(value: object) -> str:
    if not isinstance(value, str):
        return f"must be a string, not {type(value).__name__}"
    if any("\ud800" <= character <= "\udfff" for character in value):
        return "is no text: it has half a character in it"
    return ""


def _path(value: object) -> str:
    return _text(value) or ("has a null byte in it" if "\0" in str(value) else "")


def _flag(value: object) -> str:
    return "" if isinstance(value, bool) else f"must be true or false, not {type(value).__name__}"


def _number(value: object) -> str:
    if not _is_whole(value):
        return f"must be a whole number, not {type(value).__name__}"
    return "" if _is_in_range(value) else "is out of range"


def _not_negative(value: object) -> str:
    return _number(value) or ("must not be negative" if isinstance(value, int) and value < 0 else "")


def _range(value: object) -> str:
    numbers = cast("Sequence[object]", value) if isinstance(value, list | tuple) else [value]
    is_list = isinstance(value, list | tuple) and all(map(_is_whole, numbers))
    if not is_list:
        return "must be a list of whole numbers"
    return "" if all(map(_is_in_range, numbers)) else "is out of range"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_in_range(value: object) -> bool:
    return isinstance(value, int) and abs(value) <= _LARGEST


_TOOLS: Final[dict[str, dict[str, tuple[bool, _Check]]]] = {
    "bash": {"command": (False, _text), "restart": (False, _flag), "timeout_ms": (False, _not_negative)},
    "read": {"file_path": (True, _path), "view_range": (False, _range)},
    "write": {"file_path": (True, _path), "content": (True, _text)},
    "edit": {
        "file_path": (True, _path),
        "old_string": (True, _text),
        "new_string": (True, _text),
        "replace_all": (False, _flag),
    },
    "glob": {"pattern": (True, _path), "path": (False, _path)},
    "grep": {"pattern": (True, _text), "path": (False, _path)},
}

NAMES: Final = tuple(_TOOLS)
