"""A widget in a cell: two outputs, the widget and its static copy, of which CSS shows exactly one.

Where the notebook is read without its kernel, untrusted, converted, or on a page that strips style, the widget's output
is nothing and the copy is what there is (fault 45). One output with both would be blank in two of these.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Protocol

from memkernel.jupyter.preferences import Preferences
from memkernel.jupyter.shell import Shell, can_update, display
from memkernel.jupyter.widgets.living import LivingWidgets

if TYPE_CHECKING:
    from memkernel.jupyter.widgets.widget import MemoryWidget

VIEW_TYPE: Final = "application/vnd.jupyter.widget-view+json"

# The live view hides the copy after it; a copy without a live view hides the error line in the view's place.
_ONE_OF_TWO: Final = (
    "<style>.jp-OutputArea-child:has(.mk)+.jp-OutputArea-child:has(.mk-static){display:none}"
    ".jp-OutputArea-child:not(:has(.mk)):has(+.jp-OutputArea-child .mk-static){display:none}</style>"
)


class Representable(Protocol):
    """What has a text and an HTML of its own."""

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]: ...


class Outputs:
    """Shows widgets in the cells of one shell.

    Attributes:
        preferences: of the kernel.
        living: the widgets that are alive.
    """

    def __init__(self, shell: Shell, preferences: Preferences) -> None:
        self._shell = shell
        self.preferences = preferences
        self.living = LivingWidgets()

    @property
    def are_live(self) -> bool:
        """Whether a widget may be made: in a kernel, where the person has not asked for static output."""
        return (
            self.preferences["render"] != "static"
            and can_update(self._shell)
            and all(map(find_spec, ("anywidget", "ipywidgets")))  # fault 48: without them all is text and HTML
        )

    def show(self, widget: MemoryWidget) -> None:
        """Show a widget and its static copy, which is kept in step with it.

        Where this cell has shown it already nothing happens: `diff.show()` at the end of a cell gives the widget
        back, and IPython shows what a cell gives back.
        """
        if widget.shown_in == (self, self.living.cells):
            return
        widget.shown_in = self, self.living.cells
        widget.open()  # it may have been closed with the cell that had shown it
        self.living.add(widget)
        display({VIEW_TYPE: _view(widget), "text/plain": ""}, raw=True)
        widget.static_copy = display(bundle_of(widget), raw=True, display_id=True)

    def show_thing(self, thing: Representable, make: Callable[[], MemoryWidget | None]) -> MemoryWidget | None:
        """Show a thing by the widget that `make` makes of it, or as text and HTML where none can or may be made."""
        widget = make() if self.are_live else None
        if widget is None:
            display(thing._repr_mimebundle_(), raw=True)  # pyright: ignore[reportPrivateUsage]  # IPython's protocol
        else:
            self.show(widget)
        return widget


def bundle_of(widget: MemoryWidget) -> dict[str, str]:
    """The widget as text and as HTML that needs no script."""
    model = escape(widget.model_id)
    html = f'<div class="mk-static" data-mk="{model}">{_ONE_OF_TWO}{widget.static_html()}</div>'
    return {"text/plain": widget.plain(), "text/html": html}


def _view(widget: MemoryWidget) -> dict[str, Any]:
    return {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
