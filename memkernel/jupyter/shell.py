"""The part of IPython that memkernel uses, with types: IPython's own annotations are partial."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, Protocol

display: Final[Any] = import_module("IPython.display").display
"""IPython's `display`."""


class Shell(Protocol):
    """What is used of `IPython.core.interactiveshell.InteractiveShell`."""

    user_ns: dict[str, Any]
    magics_manager: Any
    display_formatter: Any
    Completer: Any
    events: Any

    def push(self, variables: dict[str, Any]) -> None:
        """Set variables of the notebook."""
        ...

    def register_magics(self, *magics: object) -> None:
        """Make the magics of these objects callable."""
        ...


def can_update(shell: Shell) -> bool:
    """Whether outputs of this shell can be replaced: in a kernel; a terminal gets a run's text as it comes."""
    return getattr(shell, "kernel", None) is not None
