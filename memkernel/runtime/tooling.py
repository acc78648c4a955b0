"""What an agent's tool call in a sandbox is told of its files (SANDBOX.md, Decision 22). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from memkernel.errors import SessionOverError
from memkernel.models import CellResult, StoreReport, SyncConflict, SyncReport, ToolAnswer
from memkernel.render import counted, one_line

_LATER: Final = "cannot be saved right now: what lies there is kept, and saved later."
_OVER: Final = "cannot be saved any more, as its session has ended: what lies there is kept for the user."
_MOST_PATHS: Final = 20
_NAMED: Final = 3
_PATH_CHARACTERS: Final = 1_100
_LINE_CHARACTERS: Final = 200

_SUBJECTS: Final = ("command", "file_path", "pattern", "path")
"""What of a call's input says what it is about."""


def told(answer: ToolAnswer, report: SyncReport) -> ToolAnswer:
    """The tool's answer, and after it a sentence for each path that is not saved as the tool left it.

    A conflict makes it an error (the model has to read the file and do its work again), and so does a store that
    cannot be reached. A refused file, and deletions that were held back, do not.
    """
    sentences = _first([sentence for store in report.stores for sentence in _sentences(store)])
    if not sentences:
        return answer
    text = "\n".join(sentences)
    if not isinstance(answer.content, str):  # an image: the API takes the content of an error as text only
        return ToolAnswer((*answer.content, {"type": "text", "text": text}))
    is_error = answer.is_error or any(store.conflicts or store.trouble for store in report.stores)
    return ToolAnswer("\n\n".join(part for part in (answer.content, text) if part), is_error)


def interrupted(name: str) -> ToolAnswer:
    """What a call is answered that a person ended before it began; one that had begun is answered the same."""
    return ToolAnswer(f"{name}: interrupted by the user", is_error=True)


def as_cell(answer: ToolAnswer, duration_s: float) -> CellResult:
    """The call as the sandbox's journal tells of it: how it ended, and when; not what it printed."""
    return CellResult(
        status="error" if answer.is_error else "ok",
        stdout="",
        stderr="",
        result=None,
        outputs=(),
        error=None,
        exit_code=None,
        duration_s=duration_s,
    )


def call_line(name: str, given: Mapping[str, object]) -> str:
    """A call in a few words: `bash ls -l`, `grep feet /mnt/memory/team-notes`."""
    subjects = [text for field in _SUBJECTS if isinstance(text := given.get(field), str)]
    return one_line(" ".join([name, *" ".join(subjects).split()]), _LINE_CHARACTERS)


# -- sentences -------------------------------------------------------------------------------------


def _first(sentences: list[str]) -> list[str]:
    left = len(sentences) - _MOST_PATHS
    return sentences if left <= 0 else [*sentences[:_MOST_PATHS], f"And {counted(left, 'more path')} like these."]


def _sentences(store: StoreReport) -> Iterator[str]:
    if store.trouble is not None:
        yield f"{store.mount_path} {_OVER if isinstance(store.trouble, SessionOverError) else _LATER}"
    for conflict in store.conflicts:
        yield _not_saved(_within(store, conflict.path), conflict)
    for version in store.merged:
        yield f"{_within(store, version.path or '')} was merged with what the store had meanwhile: read it again."
    for refused in store.refused:
        yield f"{_within(store, refused.path)} was not saved: {refused.reason}."
    if store.held_back is not None:
        yield _held_back(store, store.held_back.paths)
    for note in store.notes:
        yield f"{_within(store, note) if note.startswith('/') else f'{store.mount_path}: {one_line(note)}'}."


def _not_saved(path: str, conflict: SyncConflict) -> str:
    reason = one_line(conflict.reason)
    if reason.startswith("was not saved: "):  # full, archived: to do it again would be in vain
        return f"{path} {reason}. It is again as the store has it."
    if reason.startswith("was not saved, because "):
        return f"{path} {reason}. It is now as the store has it: do it again."
    return f"{path} {reason}, so it was not saved. It is now as the store has it: read it and do it again."


def _held_back(store: StoreReport, paths: tuple[str, ...]) -> str:
    named = ", ".join(one_line(path, _PATH_CHARACTERS) for path in paths[:_NAMED])
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return f"{store.mount_path}: all its files were gone, so nothing was deleted; {named}{more} are there again."


def _within(store: StoreReport, path: str) -> str:
    return one_line(f"{store.mount_path}{path}", _PATH_CHARACTERS)
