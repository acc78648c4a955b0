"""Which widgets are alive. A widget costs the page and the kernel memory as long as nobody closes it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from memkernel.jupyter.widgets.widget import MemoryWidget

MOST: Final = 40
"""So many widgets of a kernel live at once; of older ones their static copies stay."""


class LivingWidgets:
    """Closes the widgets of a cell that runs again, and beyond `MOST` the oldest.

    Attributes:
        cells: how many cells have begun.
    """

    def __init__(self) -> None:
        self.cells = 0
        self._lock = threading.Lock()
        self._cell: str | None = None
        self._widgets: list[tuple[str | None, MemoryWidget]] = []  # oldest first

    def __len__(self) -> int:
        return len(self._widgets)

    def begin_cell(self, info: Any) -> None:
        """IPython's `pre_run_cell`: what this cell had shown goes. Hosts that do not name their cells name None."""
        self.cells += 1
        self._cell = getattr(info, "cell_id", None)
        if self._cell is not None:
            self._close([widget for cell, widget in self._widgets if cell == self._cell])

    def add(self, widget: MemoryWidget) -> None:
        """A widget that the cell which runs shows now."""
        with self._lock:
            self._widgets = [*((cell, one) for cell, one in self._widgets if one is not widget), (self._cell, widget)]
            surplus = self._widgets[:-MOST]
        self._close([widget for _, widget in surplus])

    def erased(self, teller: MemoryWidget | None = None) -> None:
        """A text was erased for ever: no other widget than the one that tells it goes on showing it."""
        for _, widget in self._widgets:
            if widget is not teller:
                widget.erased()

    def _close(self, widgets: list[MemoryWidget]) -> None:
        with self._lock:
            self._widgets = [(cell, widget) for cell, widget in self._widgets if widget not in widgets]
        for widget in widgets:
            widget.close()
