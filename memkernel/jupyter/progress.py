"""How far something is, as a bar of text: replaced where outputs can be, written over in a terminal."""

from __future__ import annotations

import sys
import threading
import time
from html import escape
from typing import Any, Final

from IPython.display import DisplayHandle

from memkernel.render import duration_text, one_line

WIDTH: Final = 24
_PAUSE_S: Final = 0.1
_CHARACTERS: Final = 100


class Bar:
    """A bar and what is being done; `_repr_html_` keeps its width."""

    def __init__(self, text: str, done: float | None) -> None:
        self.text, self.done = one_line(text[:1].upper() + text[1:], _CHARACTERS), done

    def __repr__(self) -> str:
        if self.done is None:
            return self.text
        full = round(WIDTH * min(max(self.done, 0.0), 1.0))
        return f"{'█' * full}{'░' * (WIDTH - full)} {min(max(self.done, 0.0), 1.0):4.0%}  {self.text}"

    def _repr_html_(self) -> str:
        # Colours and background are the host's own: nothing is set, so light and dark are both right.
        return f"<pre>{escape(repr(self))}</pre>"


class Progress:
    """Tells a person how far it is. Nothing is shown before the first call.

    Args:
        live: outputs can be replaced (a kernel); else a line of a terminal is written over.
    """

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._lock = threading.Lock()
        self._handle: Any = None
        self._begun_at = time.monotonic()
        self._shown_at = float("-inf")

    def __call__(self, text: str, done: float | None) -> None:
        """What is done now, and how far everything is (0 to 1; None: unknown)."""
        with self._lock:
            now = time.monotonic()
            if now - self._shown_at >= _PAUSE_S:
                self._shown_at = now
                self._show(Bar(text, done))

    def end(self, sentence: str) -> None:
        """Put a sentence in the bar's place; nothing where there was none."""
        if self._was_shown:
            with self._lock:
                self._show(Bar(f"{sentence} ({duration_text(time.monotonic() - self._begun_at)})", None))
        self.stop()

    def stop(self) -> None:
        """Leave the bar as it is: what comes next stands below it."""
        if self._was_shown and not self._live:
            print()

    @property
    def _was_shown(self) -> bool:
        return self._shown_at != float("-inf")

    def _show(self, bar: Bar) -> None:
        if not self._live:
            sys.stdout.write(f"\r\x1b[2K{bar!r}")
            sys.stdout.flush()
        elif self._handle is None:
            self._handle = DisplayHandle()
            self._handle.display(bar)
        else:
            self._handle.update(bar)
