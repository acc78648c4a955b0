"""Recordings: what an agent's model said, in a file. `recorder` makes them, `replay` answers with them.

JSON lines: a header, then for each prompt a line of its own and one for every reply to it. What the tools came back
with is not in them, but for which calls failed: in a replay they are called again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast, get_args

from memkernel.errors import InvalidInputError, RecordingError
from memkernel.models import RunKind

FORMAT: Final = 1
SHIPPED: Final = Path(__file__).parents[1] / "recordings"
OnExisting = Literal["error", "overwrite"]

_T = TypeVar("_T")

_HOW: Final = "One is made with Agent(record=FILE), or with `%%agent --record FILE`."
_LARGEST_BYTES: Final = 32 * 1024 * 1024
_NEEDED: Final = {"text": ("text", str), "thinking": ("thinking", str), "tool_use": ("input", dict)}
_KEY: Final = re.compile(r"sk-ant-[\w-]+")
_STATES: Final = "Replay it with the tools that it was recorded with, and on a new store."


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply of the model.

    Attributes:
        blocks: its content as the API's JSON.
        usage: the tokens by the API's names.
        wait_ms: until its first word, in milliseconds.
        took_ms: from the first word to the last.
        failed: which of its calls came back as an error, counted from 0.
    """

    blocks: Sequence[Mapping[str, Any]]
    stop_reason: str | None
    usage: Mapping[str, int]
    wait_ms: int = 0
    took_ms: int = 0
    failed: Sequence[int] = ()

    @property
    def calls(self) -> list[str]:
        """The names of the tools that it calls, in order."""
        return [block["name"] for block in self.blocks if block["type"] == "tool_use"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A prompt, and the replies to it."""

    prompt: str
    answers: Sequence[Answer]


@dataclass(frozen=True)
class Recording:
    """The recorded runs of one agent.

    Attributes:
        name: what it was loaded by, and what messages call it.
        model: the name of the model that answered.
        kind: who answered then: a `live` model, or a script in its place (`scripted`).
        on_existing: what the memory tool's `create` did where a file is; a replay does the same.
    """

    name: str
    model: str
    kind: RunKind
    made_at: datetime
    exchanges: Sequence[Exchange] = field(repr=False)
    on_existing: OnExisting = "error"

    @property
    def prompts(self) -> list[str]:
        """What was asked, in order."""
        return [exchange.prompt for exchange in self.exchanges]

    @property
    def prompt(self) -> str:
        """What was asked first."""
        return self.exchanges[0].prompt

    @property
    def tools(self) -> list[str]:
        """The names of the tools that it calls."""
        answers = [answer for exchange in self.exchanges for answer in exchange.answers]
        return sorted({name for answer in answers for name in answer.calls})

    @property
    def sentence(self) -> str:
        """What a person has to know of a replay."""
        who = f"of {self.model}" if self.kind == "live" else "of a script, no language model,"
        return f"A recording {who} from {self.made_at:%Y-%m-%d}: its answers are played again, its tools really run."


# -- the file --------------------------------------------------------------------------------------


def shipped() -> list[str]:
    """The names of the recordings that come with memkernel."""
    return sorted(path.stem for path in SHIPPED.glob("*.jsonl"))


def load(name_or_path: str | Path) -> Recording:
    """A recording: one that comes with memkernel by its name, or a file.

    Raises:
        InvalidInputError: the name is neither a text nor a path.
        RecordingError: there is none of that name, or the file is no recording.
    """
    name = cast("object", name_or_path)
    if not isinstance(name, str | Path) or not str(name).strip():
        raise InvalidInputError(f"a recording is named by a text or a path, not {name_or_path!r:.80}")
    known = shipped()
    path = SHIPPED / f"{name}.jsonl" if str(name) in known else Path(name).expanduser()
    try:
        size, content = path.stat().st_size, b""
        if size <= _LARGEST_BYTES:
            content = path.read_bytes()
    except (OSError, ValueError) as error:
        raise _not_found(str(name), known, error) from None
    if not content:
        raise RecordingError(f"{name} is no recording: it is {'too large' if size else 'empty'}", hint=_HOW)
    return parsed(content, str(name))


def _not_found(name: str, known: Sequence[str], error: Exception) -> RecordingError:
    near = get_close_matches(name, known, n=1)
    hint = (
        f"Did you mean {near[0]}?" if near else f"Those that come with memkernel: {', '.join(known)}; or name a file."
    )
    missing = isinstance(error, FileNotFoundError | ValueError)
    return RecordingError(
        f"there is no recording {name}" if missing else f"{name} cannot be read: {cast(OSError, error).strerror}",
        hint=hint,
    )


def dumped(recording: Recording) -> bytes:
    """The recording as a file's content; keys of the API that a person or a tool put into it are masked."""
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in _lines(recording))
    # A lone surrogate becomes its escape, which is JSON again.
    return _KEY.sub("sk-ant-…", text).encode(errors="backslashreplace")


def _lines(recording: Recording) -> Iterator[Mapping[str, object]]:
    yield {
        "recording": FORMAT,
        "model": recording.model,
        "kind": recording.kind,
        "made_at": recording.made_at.isoformat(),
        "on_existing": recording.on_existing,
        "tools": recording.tools,
    }
    for exchange in recording.exchanges:
        yield {"prompt": exchange.prompt}
        for answer in exchange.answers:
            yield {
                "reply": list(answer.blocks),
                "stop_reason": answer.stop_reason,
                "usage": dict(answer.usage),
                "pauses_ms": [answer.wait_ms, answer.took_ms],
                "failed": list(answer.failed),
            }


def parsed(content: bytes, name: str) -> Recording:
    """The recording in a file's content.

    Raises:
        RecordingError: it is none, or of another format.
    """
    lines = [line for line in content.split(b"\n") if line.strip()]
    exchanges: list[Exchange] = []
    number = 1
    try:
        made = _header(json.loads(lines[0]), name)
        for number, line in enumerate(lines[1:], start=2):  # noqa: B007  # the message names the line that failed
            _take(json.loads(line), exchanges)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise RecordingError(f"{name} is no recording: its line {number} is no line of one", hint=_HOW) from None
    if not exchanges or not all(exchange.answers for exchange in exchanges):
        raise RecordingError(f"{name} is no recording: there is no reply to its prompt", hint=_HOW)
    return made(exchanges)


def _header(line: Mapping[str, Any], name: str) -> Callable[[Sequence[Exchange]], Recording]:
    if line["recording"] != FORMAT:
        raise RecordingError(
            f"{name} is a recording of format {line['recording']!r:.20}, and this memkernel reads {FORMAT}",
            hint="Record it again, or install a newer memkernel.",
        )
    model, made_at = _of(str, line["model"]), datetime.fromisoformat(line["made_at"])
    kind = cast(RunKind, _one_of(get_args(RunKind), line["kind"]))
    on_existing = cast(OnExisting, _one_of(get_args(OnExisting), line["on_existing"]))
    return lambda exchanges: Recording(name, model, kind, made_at, exchanges, on_existing)


def _take(line: Mapping[str, Any], exchanges: list[Exchange]) -> None:
    if "prompt" in line:
        exchanges.append(Exchange(_of(str, line["prompt"]), []))
    else:
        exchanges[-1] = Exchange(exchanges[-1].prompt, [*exchanges[-1].answers, _answer(line)])


def _answer(line: Mapping[str, Any]) -> Answer:
    wait_ms, took_ms = (max(0, _of(int, pause)) for pause in line["pauses_ms"])
    reason = line["stop_reason"]
    return Answer(
        [_block(block) for block in line["reply"]],
        None if reason is None else _of(str, reason),
        {str(name): _of(int, count) for name, count in line["usage"].items()},
        wait_ms,
        took_ms,
        [_of(int, n) for n in line["failed"]],
    )


def _block(block: Mapping[str, Any]) -> Mapping[str, Any]:
    field, kind = _NEEDED.get(_of(str, block["type"]), ("type", str))
    _of(kind, block[field])
    if block["type"] == "tool_use":
        _of(str, block["name"])
    return block


def _of(kind: type[_T], value: object) -> _T:
    if not isinstance(value, kind):
        raise TypeError
    return value


def _one_of(known: Sequence[str], value: object) -> str:
    return known[known.index(cast(str, value))]
