"""A sandbox's outputs in the cell of the notebook that they belong to, as they come."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Mapping
from typing import Any, Final

from memkernel.jupyter.shell import display

_STREAMS: Final = ("stdout", "stderr")


class LiveOutput:
    """Shows each output at once; may be called from any thread.

    ipykernel knows by a context variable which cell an output belongs to: each one is shown in the context of the
    cell that made this object.
    """

    def __init__(self) -> None:
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._wrote = ""
        self.has_cleared = False  # what stood above in the cell is gone

    def __call__(self, output: Mapping[str, Any]) -> None:
        """Show an output of nbformat's shape; errors are left to the one who raises them."""
        with self._lock:
            self._context.copy().run(self._show, output)

    def _show(self, output: Mapping[str, Any]) -> None:
        kind = output.get("output_type")
        if kind == "stream":
            self._write(str(output.get("name")), str(output.get("text", "")))
        elif kind in ("display_data", "execute_result", "update_display_data"):
            _display(output, update=kind == "update_display_data")
        elif kind == "clear_output":
            self.has_cleared = True
            _clear(wait=bool(output.get("wait")))

    def _write(self, name: str, text: str) -> None:
        if name not in _STREAMS:
            return
        if self._wrote not in ("", name):  # the two streams are sent apart: in the order in which they were written
            getattr(sys, self._wrote).flush()
        self._wrote = name
        stream = getattr(sys, name)
        stream.write(text)


def write_error(text: str) -> None:
    """Text on the cell's stderr."""
    print(text, file=sys.stderr)


def _display(output: Mapping[str, Any], *, update: bool) -> None:
    display_id = output.get("transient", {}).get("display_id")
    display(
        output.get("data", {}),
        raw=True,
        metadata=output.get("metadata") or None,
        display_id=display_id,
        update=update and display_id is not None,
    )


def _clear(*, wait: bool) -> None:
    from IPython.display import clear_output

    clear_output(wait=wait)
