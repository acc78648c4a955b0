"""`%memory config`: how this kernel shows things."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from memkernel.errors import InvalidInputError, MemkernelError
from memkernel.handle.records import Records
from memkernel.models import RENDER, Settings


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


def _count(text: str) -> int:
    if int(text) < 0:
        raise ValueError
    return int(text)


def _switch(summary: str, default: str) -> Setting:
    return Setting(summary, "on or off", default, _one_of("on", "off"))


SETTINGS: Final = {
    "diff_context": Setting("equal lines that a diff shows around a change", "a number", 3, _count),
    "diff_fold": _switch("other equal lines of a diff are folded", "on"),
    "diff_mode": Setting(
        "a diff's two sides; auto: by the room there is",
        "auto, split or unified",
        "auto",
        _one_of("auto", "split", "unified"),
    ),
    "diff_whitespace": Setting(
        "whether white space alone makes lines differ", "show or ignore", "show", _one_of("show", "ignore")
    ),
    "diff_words": _switch("a diff marks the words that changed", "on"),
    "diff_wrap": _switch("a diff breaks long lines", "on"),
    "limit": Setting("rows that a list shows; it holds all of them", "a number", 60, _positive),
    "model": Setting("the model of %%agent", "a model's name", None, str),
    "render": Setting(
        "static: text and HTML in place of widgets, and a run's output once, at its end",
        "auto, widget or static",
        "auto",
        _one_of(*RENDER),
    ),
    "traceback": _switch("whole tracebacks in place of two lines", "off"),
}
_WIDTH: Final = max(map(len, SETTINGS))


@dataclass
class Preferences:
    """The settings of this kernel. They last as long as it does.

    Attributes:
        values: what was set here, by name; other settings have their defaults.
        defaults: what holds where nothing was set.
    """

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    defaults: dict[str, Any] = field(default_factory=lambda: {name: each.default for name, each in SETTINGS.items()})

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name, self.defaults[name])

    def begin_with(self, settings: Settings) -> None:
        """Take what the environment says as the default."""
        self.defaults["render"] = settings.render

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
        value = self[name]
        return f"{name:<{_WIDTH}} {'-' if value is None else value!s:<8} {SETTINGS[name].summary}"


def find(name: str) -> Setting:
    """The setting of this name.

    Raises:
        InvalidInputError: there is none.
    """
    if name not in SETTINGS:
        raise InvalidInputError(f"there is no setting {name!r}", hint=f"Settings: {', '.join(SETTINGS)}")
    return SETTINGS[name]
