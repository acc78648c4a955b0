"""Make a recording of an agent's runs, from their events."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memkernel.agent import recording
from memkernel.agent.events import (
    Event,
    Replied,
    RunStarted,
    TextDelta,
    ThinkingDelta,
    ToolReturned,
    TurnEnded,
    TurnStarted,
)
from memkernel.agent.recording import Answer, Exchange, OnExisting, Recording
from memkernel.errors import InvalidInputError, RecordingError
from memkernel.models import RunKind, Usage

if TYPE_CHECKING:
    from memkernel.agent.conversation import Block

_FIELDS: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_NOT_SENT: Final = {"signature", "id"}
"""Of no use in a replay: a thought's signature is for the model alone, a call gets a new id."""


class Recorder:
    """Listens to the runs of one agent, one after the other; `save` writes what it has heard so far.

    A turn counts once it has ended: what a stop cut off is not in the recording, which then ends before it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        on_existing: OnExisting = "error",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Record into a file; nothing is written yet.

        Args:
            path: where to; an older recording there is replaced, no other file is.
            on_existing: what the agent's memory tool does where a file is; a replay does the same.
            clock: the time in seconds.

        Raises:
            InvalidInputError: no path.
            RecordingError: nothing can be written there, or it is another file.
        """
        self.path = _checked(path)
        self._on_existing: OnExisting = on_existing
        self._clock = clock
        self._started: RunStarted | None = None
        self._made_at = datetime.now(UTC)
        self._exchanges: list[Exchange] = []
        self._begin_turn()

    def __call__(self, event: Event) -> None:
        """Take an event of a run."""
        match event:
            case RunStarted():
                self._started = event
                self._exchanges.append(Exchange(event.prompt, []))
            case TurnStarted():
                self._begin_turn()
            case TextDelta() | ThinkingDelta() if self._first_s is None:
                self._first_s = self._clock()
            case Replied(content=content):
                self._blocks, self._last_s = content, self._clock()
            case ToolReturned(is_error=True, tool_use_id=called):
                self._failed.append(called)
            case TurnEnded(stop_reason=reason, usage=usage):
                self._keep(reason, usage)
            case _:
                pass

    def _begin_turn(self) -> None:
        self._begun_s = self._clock()
        self._first_s: float | None = None
        self._last_s: float | None = None
        self._blocks: Sequence[Mapping[str, Any]] = ()
        self._failed: list[str] = []

    def _keep(self, reason: str | None, usage: Usage) -> None:
        last_s = self._last_s or self._clock()
        first_s = self._first_s or last_s
        calls = [block["id"] for block in self._blocks if block["type"] == "tool_use"]
        answer = Answer(
            [_kept(block) for block in self._blocks],
            reason,
            {name: getattr(usage, name) for name in _FIELDS if getattr(usage, name)},
            round(1000 * (first_s - self._begun_s)),
            round(1000 * (last_s - first_s)),
            [n for n, called in enumerate(calls) if called in self._failed],
        )
        exchange = self._exchanges[-1]
        self._exchanges[-1] = Exchange(exchange.prompt, [*exchange.answers, answer])
        self._begin_turn()

    @property
    def recording(self) -> Recording | None:
        """What was recorded so far; None before the first turn has ended."""
        answered = [exchange for exchange in self._exchanges if exchange.answers]
        if self._started is None or not answered:
            return None
        kind: RunKind = self._started.kind
        return Recording(self.path.stem, self._started.model, kind, self._made_at, answered, self._on_existing)

    def save(self) -> None:
        """Write the recording, whole or not at all; nothing where nothing was recorded.

        Raises:
            RecordingError: it cannot be written.
        """
        made = self.recording
        if made is not None:
            _write(self.path, recording.dumped(made))


def recorder(record: str | Path | None, replay: object, *, on_existing: OnExisting = "error") -> Recorder | None:
    """The recorder that a person asked for, if any.

    Raises:
        InvalidInputError: no path; or a replay is asked for as well.
        RecordingError: nothing can be written there, or it is another file.
    """
    if record is None:
        return None
    if replay is not None:
        raise InvalidInputError(
            "replay and record cannot both be given", hint="A recording is made of a run that a model answers."
        )
    return Recorder(record, on_existing=on_existing)


def _kept(block: Mapping[str, Any]) -> Block:
    """The block as a replay needs it. Fields that are null say nothing."""
    unsaid = _NOT_SENT if block["type"] in ("tool_use", "thinking") else set[str]()
    return {name: value for name, value in block.items() if value is not None and name not in unsaid}


def _checked(path: object) -> Path:
    if not isinstance(path, str | Path) or not str(path).strip() or "\0" in str(path):
        raise InvalidInputError(f"a recording goes into a file, not {path!r:.80}", hint='Name one: "run.jsonl".')
    target = Path(path).expanduser()
    try:
        folder, exists = target.parent.is_dir(), target.exists()
    except (OSError, ValueError):
        folder = exists = False
    if not folder or not os.access(target.parent, os.W_OK):
        raise RecordingError(f"{target} cannot be written", hint="Its folder has to be there, and writable.")
    if exists:
        _check_is_recording(target)
    return target


def _check_is_recording(target: Path) -> None:
    try:
        recording.load(target)
    except RecordingError:
        raise RecordingError(f"{target} is there already, and is no recording", hint="Name another file.") from None


def _write(path: Path, content: bytes) -> None:
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        draft.write_bytes(content)
        os.replace(draft, path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise RecordingError(f"{path} cannot be written: {error.strerror}", hint="Name another file.") from error
