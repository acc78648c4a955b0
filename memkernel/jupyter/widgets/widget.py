"""`MemoryWidget`: what every widget has: the bundle, requests of the page, events, and its static copy."""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

from traitlets import Bool, HasTraits, Unicode

from memkernel.errors import MemkernelError
from memkernel.jupyter.widgets.outputs import Outputs, bundle_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    class AnyWidget(HasTraits):
        """The part of anywidget and ipywidgets that is used, with types: they have none."""

        comm: Any
        model_id: str

        def __init__(self, **traits: Any) -> None: ...
        def open(self) -> None: ...
        def close(self) -> None: ...
        def hold_sync(self) -> AbstractContextManager[None]: ...
        def set_state(self, sync_data: Mapping[str, Any]) -> None: ...
        def send(self, content: object, buffers: object = None) -> None: ...
        def on_msg(self, callback: Callable[..., None]) -> None: ...
        def _send(self, msg: object, buffers: object = None) -> None: ...

else:
    from anywidget import AnyWidget

BUNDLE: Final = Path(__file__).parent.parent / "static" / "widgets.js"
STATIC_PAUSE_S: Final = 1.0
"""The least time between two updates of a static copy; the last state always gets there."""

_log = logging.getLogger(__name__)
_MARK: Final = "_memkernel_request"
_NOT_THE_PAGES: Final = frozenset({"kind", "readonly", "as_of"})

Method = TypeVar("Method", bound=Callable[..., Any])
Observer = Callable[[str, Mapping[str, Any]], None]


def request(method: Method) -> Method:
    """A method that the page may call by its name, with JSON in and out.

    It runs on whichever thread the message came, one at a time for a widget, also while a cell runs: it must keep to
    what is safe there (a connection of the pool; no cursor or transaction of others).
    """
    setattr(method, _MARK, "in turn")
    return method


def slow_request(method: Method) -> Method:
    """The same for what takes long: it has a thread of its own, and the widget's other requests do not wait for it."""
    setattr(method, _MARK, "beside")
    return method


class MemoryWidget(AnyWidget):
    """A view of memory in the page. Its class says what is seen, its `kind` which view of the bundle draws it.

    Attributes:
        kind: the name of the view.
        readonly: nothing can be changed from the page.
        as_of: when what the state shows was read, in ISO 8601.
    """

    _esm: ClassVar[Any] = BUNDLE

    kind = Unicode().tag(sync=True)
    readonly = Bool(False).tag(sync=True)
    as_of = Unicode().tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        self._turn = threading.RLock()
        self._observers: list[Observer] = []
        self._copying = threading.Lock()
        self._copy_timer: threading.Timer | None = None
        self._copied_at = float("-inf")
        self.shown_in: tuple[Outputs, int] | None = None
        self.static_copy: Any = None  # the DisplayHandle, once shown
        super().__init__(**traits)
        self.on_msg(self._on_message)

    def _ipython_display_(self) -> None:
        """IPython's protocol: as the value of a cell it is shown where it was shown before."""
        if self.shown_in is not None:
            self.shown_in[0].show(self)

    # -- its static copy -----------------------------------------------------------------------------

    def plain(self) -> str:
        """What it shows as plain text, in at most 60 lines."""
        raise NotImplementedError

    def static_html(self) -> str:
        """What it shows as HTML without script, in at most 24 KB."""
        raise NotImplementedError

    def refresh_static(self, *, at_once: bool = False) -> None:
        """What is looked at has changed: bring the static copy up to it, once a second at most."""
        with self._copying:
            if self.static_copy is None or (self._copy_timer is not None and not at_once):
                return
            left_s = self._copied_at + STATIC_PAUSE_S - time.monotonic()
            if at_once or left_s <= 0:
                self._copy()
                return
            self._copy_timer = threading.Timer(left_s, contextvars.copy_context().run, [self._on_timer])
            self._copy_timer.daemon = True
            self._copy_timer.start()

    def _on_timer(self) -> None:
        with self._copying:
            if self._copy_timer is None:
                return
            try:
                self._copy()
            except Exception:  # it may have to read, and the database is away: nobody waits for this thread's error
                _log.warning("the copy of a %s was not brought up to date", type(self).__name__, exc_info=True)

    def _copy(self) -> None:
        if self._copy_timer is not None:
            self._copy_timer.cancel()
            self._copy_timer = None
        self._copied_at = time.monotonic()
        if self.comm is not None:
            self.static_copy.update(bundle_of(self), raw=True)

    def erased(self) -> None:
        """A text of a store was erased for ever from elsewhere: show none that is gone. Any thread may say so."""

    # -- what the person does ------------------------------------------------------------------------

    def on_event(self, observer: Observer) -> None:
        """Call this with the name and the facts of whatever the person does here: `step`, `restored` …"""
        self._observers.append(observer)

    def happened(self, name: str, **facts: Any) -> None:
        """Tell the observers. One that raises is logged, and is told the next time as well."""
        for observer in tuple(self._observers):
            try:
                observer(name, facts)
            except Exception:
                _log.warning("an observer of %s failed at %s", type(self).__name__, name, exc_info=True)

    # -- the page ------------------------------------------------------------------------------------

    def tell(self, event: str, **facts: Any) -> None:
        """Say something to the page that is no state: it is not saved with the notebook."""
        self.send({"event": event, **facts})

    def set_state(self, sync_data: Mapping[str, Any]) -> None:
        """What the page says of the state, in turn with its requests; whether it may write is not the page's to say."""
        with self._turn:
            super().set_state({name: value for name, value in sync_data.items() if name not in _NOT_THE_PAGES})

    def _on_message(self, _: object, content: object, buffers: object) -> None:
        if not isinstance(content, dict):
            return
        message = cast("dict[str, Any]", content)
        method = getattr(type(self), str(message.get("method")), None)
        how = getattr(method, _MARK, None)
        if how == "beside":
            threading.Thread(target=self._answer, args=[method, message], daemon=True).start()
        elif how is not None:
            with self._turn:
                self._answer(method, message)

    def _answer(self, method: Any, message: Mapping[str, Any]) -> None:
        try:
            answer = {"result": method(self, **message.get("params", {}))}
        except MemkernelError as error:
            answer = {"error": {"message": str(error), "hint": error.hint}}
        except Exception:
            _log.exception("%s.%s failed", type(self).__name__, message.get("method"))
            answer = {"error": {"message": "memkernel failed at this", "hint": "The kernel's log tells more."}}
        self.send({"id": message.get("id"), **answer})

    def _send(self, msg: object, buffers: object = None) -> None:
        """ipywidgets' one way to the page."""
        super()._send(msg, buffers=buffers)
        self._free_the_way_back()

    def open(self) -> None:
        """Open the comm, as ipywidgets does."""
        super().open()
        self._free_the_way_back()

    def _free_the_way_back(self) -> None:
        """Let the page's next message come on the subshell that the page asks for.

        ipykernel 7 remembers which shell has last published on a comm, and sends the comm's messages there: after
        the cell that runs has, a Stop button's message would wait for the end of that very cell.
        """
        # A private attribute of ipykernel.comm.BaseComm; a test fails where it is called differently.
        getattr(self.comm, "__dict__", {}).pop("_reply_subshell_id", None)
