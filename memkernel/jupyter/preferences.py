"""`%memory config`: how this kernel shows things."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from memkernel.errors import InvalidInputError, MemkernelError
from memkernel.handle.records import Records


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: what it does, its values in words, and how a text becomes a value."""

    summary: str
    values: str
    default: Any
    parse: Callable[[str], Any]


def _one_of(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in names:
            raise ValueError
        return text

    return parse


def _positive(text: str) -> int:
    if int(text) < 1:
        raise ValueError
    return int(text)


SETTINGS: Final = {
    "limit": Setting("rows that a list shows; it holds all of them", "a number", 60, _positive),
    "model": Setting("the model of %%agent", "a model's name", None, str),
    "render": Setting(
        "static: a run's output is shown once, at its end", "auto or static", "auto", _one_of("auto", "static")
    ),
    "traceback": Setting("whole tracebacks in place of two lines", "on or off", "off", _one_of("on", "off")),
}


@dataclass
class Preferences:
    """The settings of this kernel. They last as long as it does."""

    values: dict[str, Any] = field(default_factory=lambda: {name: each.default for name, each in SETTINGS.items()})

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def set(self, name: str, text: str) -> None:
        """Change one setting.

        Raises:
            InvalidInputError: there is no such setting, or the value is none of its values.
        """
        setting = find(name)
        try:
            self.values[name] = setting.parse(text)
        except ValueError:
            raise InvalidInputError(f"{text!r} is no value of {name}", hint=f"{name} is {setting.values}.") from None
        self.apply()

    def apply(self) -> None:
        """Make the settings hold that others read."""
        MemkernelError.show_traceback = self["traceback"] == "on"
        Records.rows_shown = self["limit"]

    def __repr__(self) -> str:
        return "\n".join(self.line(name) for name in SETTINGS)

    def line(self, name: str) -> str:
        """A setting, its value and what it does."""
        value = self.values[name]
        return f"{name:<10} {'-' if value is None else value!s:<8} {SETTINGS[name].summary}"


def find(name: str) -> Setting:
    """The setting of this name.

    Raises:
        InvalidInputError: there is none.
    """
    if name not in SETTINGS:
        raise InvalidInputError(f"there is no setting {name!r}", hint=f"Settings: {', '.join(SETTINGS)}")
    return SETTINGS[name]
