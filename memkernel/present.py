"""How lower floors are shown without knowing the notebook: a registry from type to presenter.

`jupyter/` fills it when it loads. Without it, `show` prints the plain text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Presenter = Callable[[Any], object]
"""Shows one object; what it gives back is what shows it, such as a widget."""

_presenters: dict[str, Presenter] = {}


def register(kind: type | str, presenter: Presenter) -> None:
    """From now on, objects of this type are shown by this presenter.

    Args:
        kind: the type; or its full name (`memkernel.handle.diff.Diff`), where its module is not to be imported yet.
        presenter: shows one object.
    """
    _presenters[kind if isinstance(kind, str) else _name(kind)] = presenter


def forget(kind: type | str) -> None:
    """Show objects of this type as text again."""
    _presenters.pop(kind if isinstance(kind, str) else _name(kind), None)


def presenter_for(thing: object) -> Presenter | None:
    """The presenter of the object's type, or of the nearest base class that has one."""
    names = map(_name, type(thing).__mro__)
    return next((_presenters[name] for name in names if name in _presenters), None)


def show(thing: object) -> object:
    """Show an object: by its presenter where there is one, as text where there is none.

    Returns:
        What the presenter gave: the widget that shows it. None where it is shown as text.
    """
    presenter = presenter_for(thing)
    if presenter is not None:
        return presenter(thing)
    print(thing)
    return None


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
