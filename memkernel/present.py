"""How lower floors are shown without knowing the notebook: a registry from type to presenter.

`jupyter/` fills it when it loads. Without it, `show` prints the plain text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Presenter = Callable[[Any], None]

_presenters: dict[type, Presenter] = {}


def register(kind: type, presenter: Presenter) -> None:
    """From now on, objects of this type are shown by this presenter."""
    _presenters[kind] = presenter


def presenter_for(thing: object) -> Presenter | None:
    """The presenter of the object's type, or of the nearest base class that has one."""
    return next((_presenters[kind] for kind in type(thing).__mro__ if kind in _presenters), None)


def show(thing: object) -> None:
    """Show an object: by its presenter where there is one, as text where there is none."""
    presenter = presenter_for(thing)
    if presenter is None:
        print(thing)
    else:
        presenter(thing)
