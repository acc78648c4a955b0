"""What runs in a sandbox now, as the caller that waits for it sees it: a cell of the kernel, or a command.

The relay's thread fills it, the caller's empties it. What a slow caller has not shown yet is kept small: texts that
follow each other are joined, and what a clear_output would wipe away is never shown.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time
from abc import ABC, abstractmethod
from codecs import getincrementaldecoder
from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Final, cast

from memkernel.models import CellStatus
from memkernel.sandbox.inside import protocol
from memkernel.sandbox.output import Output, Outputs
from memkernel.sandbox.relay import Relay, Tail

QUIET_S: Final = 2.0
"""After one half of a cell's end, how long nothing may come before the other half is given up."""

_ARGUMENT: Final = 30_000  # bytes of a script that go as an argument
_KILL_S: Final = 2.0  # the code may have stopped the helper


class Work(ABC):
    """Something that runs."""

    def __init__(self) -> None:
        self._changed: SimpleQueue[None] = SimpleQueue()
        self._lock = threading.Lock()
        self._waiting: list[Output] = []
        self.sent = False
        self.over = False

    def wait(self, timeout_s: float) -> None:
        """Until something is new, or the time is up."""
        with contextlib.suppress(Empty):
            self._changed.get(timeout=max(timeout_s, 0.0))

    def wake(self) -> None:
        """Something is new."""
        self._changed.put(None)

    def end(self) -> None:
        """Nothing more will come."""
        self.over = True
        self.wake()

    def show(self, event: Output | None) -> None:
        """Something for the front end."""
        if event is None:
            return
        with self._lock:
            self._queue(event)
        self.wake()

    def _queue(self, event: Output) -> None:
        waiting, kind = self._waiting, event["output_type"]
        if kind == "clear_output" and not event["wait"]:
            waiting.clear()
        elif kind == "stream" and waiting and waiting[-1].get("name") == event["name"]:
            waiting[-1]["text"].append(event["text"])
            return
        elif kind == "update_display_data":
            waiting[:] = [each for each in waiting if not _same_display(each, event)]
        elif waiting and waiting[-1]["output_type"] == "clear_output":
            if kind == "clear_output":
                return
            waiting[:] = [{"output_type": "clear_output", "wait": True}]
        waiting.append(event | {"text": [event["text"]]} if kind == "stream" else event)

    def shown(self) -> list[Output]:
        """What is to be shown, once."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        return [each | {"text": "".join(each["text"])} if each["output_type"] == "stream" else each for each in waiting]

    @abstractmethod
    def status(self, *, died: bool) -> CellStatus:
        """How it ended, where nobody had to end it; `died`: the kernel has ended, too."""

    @abstractmethod
    def interrupt(self) -> None:
        """Ask it to end; raises RelayClosedError."""

    @abstractmethod
    def kill(self) -> bool:
        """Kill what it started; False where nobody answers. Raises RelayClosedError."""


def _same_display(one: Output, other: Output) -> bool:
    return one["output_type"] == "update_display_data" and one["transient"] == other["transient"]


class Cell(Work):
    """A cell that the kernel runs. It is over when both its reply and its idle have come.

    Both can be forged, and either can be withheld, by the code that runs; so one without the other ends it as well once
    nothing has come for a while.
    """

    def __init__(self, relay: Relay, outputs: Outputs) -> None:
        super().__init__()
        self._relay = relay
        self.outputs = outputs
        self.reply: Mapping[str, Any] | None = None
        self.half_told = False
        self.told_to_exit = False
        self._idle = False
        self._heard_at = time.monotonic()

    def status(self, *, died: bool) -> CellStatus:
        if self.reply is None and died:
            return "died"
        failed = self.outputs.error is not None or (self.reply is not None and self.reply.get("status") != "ok")
        return "error" if failed else "ok"

    def interrupt(self) -> None:
        self._relay.interrupt()

    def kill(self) -> bool:
        return self._relay.kill_since_mark(_KILL_S) is not None

    def heard(self) -> None:
        """Something of this cell came."""
        self._heard_at = time.monotonic()

    def on_iopub(self, kind: str, content: Mapping[str, Any]) -> None:
        """A message that names this cell as its parent."""
        self.heard()
        if kind == "status":
            if content.get("execution_state") == "idle":
                self._idle = True
                self._end_if_complete()
        else:
            self.show(self.outputs.add(kind, content))

    def on_reply(self, content: Mapping[str, Any]) -> None:
        """The kernel's answer."""
        self.heard()
        if self.reply is None:
            self.reply = content
            payload = content.get("payload")
            for each in cast("list[Any]", payload) if isinstance(payload, list) else ():
                self._obey(each)
            self._end_if_complete()

    def _obey(self, payload: object) -> None:
        """What a reply asks of the front end."""
        found = cast("Mapping[str, Any]", payload if isinstance(payload, Mapping) else {})
        if found.get("source") == "ask_exit":
            self.told_to_exit = self.told_to_exit or not found.get("keepkernel")
        else:
            self.show(self.outputs.page(found))

    def _end_if_complete(self) -> None:
        if self.reply is not None and self._idle:
            self.end()

    def end_if_quiet(self) -> None:
        """Give up the half of the end that does not come."""
        if not self.over and (self.reply is not None or self._idle) and time.monotonic() - self._heard_at > QUIET_S:
            self.half_told = True
            self.end()


class Command(Work):
    """A command beside the kernel; its output is kept as bytes, and shown as text where somebody looks."""

    def __init__(self, relay: Relay, limit: int, outputs: Outputs | None = None) -> None:
        super().__init__()
        self._relay = relay
        self._limit = limit
        self._outputs = outputs
        self._tails = {protocol.STDOUT: Tail(limit), protocol.STDERR: Tail(limit)}
        self._decoders = {kind: getincrementaldecoder("utf-8")("replace") for kind in self._tails}
        self._number = 0
        self.exit_code: int | None = None
        self.timed_out = False

    def status(self, *, died: bool) -> CellStatus:
        if self.exit_code is None:
            return "died"
        return "ok" if self.exit_code == 0 else "error"

    def interrupt(self) -> None:
        self._relay.signal(self._number, signal.SIGINT)

    def kill(self) -> bool:
        return self._relay.kill(self._number, _KILL_S)

    def start(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes,
        cwd: str,
        environment: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Start it; raises RelayClosedError."""
        self.sent = True
        self._number = self._relay.command(
            argv, stdin=stdin, cwd=cwd, environment=environment or {}, timeout_s=timeout_s, handle=self._handle
        )

    def _handle(self, kind: int, payload: bytes) -> None:
        """A frame of the helper's."""
        if kind in self._tails and not self.over:
            if self._outputs is None:
                self._tails[kind].add(payload)
            else:
                name = "stdout" if kind == protocol.STDOUT else "stderr"
                text = self._decoders[kind].decode(payload)
                self.show(self._outputs.add("stream", {"name": name, "text": text}) if text else None)
        elif kind == protocol.EXIT:
            told = json.loads(payload)
            self.exit_code, self.timed_out = int(told["code"]), bool(told["timed_out"])
            self.end()

    @property
    def stdout(self) -> bytes:
        """The end of its standard output."""
        return self._tails[protocol.STDOUT].bytes()

    @property
    def stderr(self) -> bytes:
        """The end of its standard error."""
        return self._tails[protocol.STDERR].bytes()

    @property
    def truncated(self) -> bool:
        """Whether there was more."""
        return any(tail.truncated for tail in self._tails.values())


def bash_argv(text: str) -> tuple[list[str], bytes]:
    """The command and the stdin of a bash script; a long one does not fit into an argument."""
    script = text.encode("utf-8", "surrogatepass")
    if len(script) <= _ARGUMENT:
        return ["bash", "-c", text], b""
    return ["bash", "-c", 'script=$(cat; printf x); exec </dev/null; eval "${script%x}"'], script
