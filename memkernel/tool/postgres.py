"""The memory tool on a memory store in PostgreSQL: one transaction a command, every change a version."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal, get_args

from memkernel.errors import (
    CapacityError,
    ContentTooLargeError,
    InvalidContentError,
    InvalidInputError,
    InvalidPathError,
    MemoryNotFoundError,
    MemoryToolError,
    PathConflictError,
    PreconditionFailedError,
    RefusedError,
    StoreArchivedError,
)
from memkernel.models import Actor, Cause, Memory
from memkernel.paths import ancestors, check_path, overlap
from memkernel.store import Database
from memkernel.tool import edits, listing
from memkernel.tool.commands import MemoryBackend
from memkernel.tool.paths import ROOT, DotDot, MemoryPath, invalid
from memkernel.tool.words import MAX_LINES, WORDS, EditCommand, Profile

OnExisting = Literal["error", "overwrite"]

_UNLOCKED_TRIES: Final = 3


class PostgresBackend(MemoryBackend):
    """The six commands on one memory store.

    Besides `MemoryToolError`, only what the model cannot help leaves its methods: a lost database, a store
    that is gone.
    """

    def __init__(
        self,
        database: Database,
        memory_store_id: str,
        *,
        actor: Actor,
        cause: Cause | None = None,
        scope: str | None = None,
        profile: Profile = "sdk",
        on_existing: OnExisting = "error",
        dotdot: DotDot = "resolve",
    ) -> None:
        """Args:
            database: where the store is.
            memory_store_id: `memstore_…`.
            actor: who the changes are by.
            cause: the tool call that the changes come from.
            scope: one path segment; the tool then sees only the tree under `/{scope}/`, as its `/memories`.
            profile: whose sentences to use (CONTRACT A.4.1).
            on_existing: what `create` does where a file exists (CONTRACT 0.3, row 10).
            dotdot: whether `..` is resolved or always refused (CONTRACT A.5).

        Raises:
            InvalidInputError: the scope is not one legal path segment, or an option has an unknown value.
        """
        _check_option("profile", profile, get_args(Profile))
        _check_option("on_existing", on_existing, get_args(OnExisting))
        _check_option("dotdot", dotdot, get_args(DotDot))
        self.actor, self.cause, self.dotdot = actor, cause, dotdot
        self._memories, self._memory_store_id = database.memories, memory_store_id
        self._base = _base(scope)
        self._words = WORDS[profile]
        self._overwrites = on_existing == "overwrite"

    # -- the six commands --------------------------------------------------------------------------

    def view(self, path: MemoryPath, view_range: tuple[int, int] | None = None) -> str:
        location = self._locate(path)
        memory = None if path.is_root else self._head(location)
        if memory is not None:
            return self._show_file(path.spelling, _text(memory), view_range)
        entries = self._memories.entries(self._memory_store_id, location)
        if not entries and not path.is_root:
            raise MemoryToolError(self._words.nothing_to_view(path.spelling))
        return listing.render(path.spelling, entries, self._words, cut=len(location.rstrip("/")) + 1)

    def create(self, path: MemoryPath, file_text: str) -> str:
        if path.is_root:
            raise MemoryToolError(self._words.already_exists(path.spelling))
        write = self._memories.write if self._overwrites else self._memories.create
        try:
            write(self._memory_store_id, path=self._locate(path), content=file_text, actor=self.actor, cause=self.cause)
        except PathConflictError as error:
            raise self._why_no_create(path, error.conflicting_path) from None
        except (InvalidInputError, RefusedError) as error:
            raise _refusal(f"create {path.spelling}", error) from None
        return self._words.created(path.spelling)

    def str_replace(self, path: MemoryPath, old_str: str, new_str: str) -> str:
        at = 0

        def replace(text: str) -> str:
            nonlocal at
            replacement = edits.str_replace(text, old_str, new_str)
            at = replacement.at
            return replacement.text

        try:
            text = self._edit("str_replace", path, replace)
        except edits.NoMatchError:
            raise MemoryToolError(self._words.no_match(old_str, path.spelling)) from None
        except edits.ManyMatchesError as error:
            raise MemoryToolError(self._words.many_matches(old_str, error.lines)) from None
        return self._words.replaced(edits.snippet(text, at))

    def insert(self, path: MemoryPath, insert_line: int, insert_text: str) -> str:
        try:
            self._edit("insert", path, lambda text: edits.insert(text, insert_line, insert_text))
        except edits.LineOutOfRangeError as error:
            raise MemoryToolError(self._words.bad_insert_line(insert_line, error.line_count)) from None
        return self._words.inserted(path.spelling)

    def delete(self, path: MemoryPath) -> str:
        if path.is_root:
            raise MemoryToolError(self._words.cannot_delete_root())
        try:
            self._memories.delete_tree(self._memory_store_id, self._locate(path), actor=self.actor, cause=self.cause)
        except MemoryNotFoundError:
            raise MemoryToolError(self._words.nothing_to_move(path.spelling)) from None
        except (InvalidInputError, RefusedError) as error:
            raise _refusal(f"delete {path.spelling}", error) from None
        return self._words.deleted(path.spelling)

    def rename(self, old_path: MemoryPath, new_path: MemoryPath) -> str:
        if old_path.is_root:
            raise MemoryToolError(self._words.cannot_rename_root())
        if overlap(old_path.path, new_path.path):
            raise self._why_no_rename(old_path, new_path, self._words.cannot_rename_inside)
        old, new = self._locate(old_path), self._locate(new_path)
        try:
            self._memories.rename_tree(self._memory_store_id, old, new, actor=self.actor, cause=self.cause)
        except (PathConflictError, MemoryNotFoundError):
            raise self._why_no_rename(old_path, new_path, self._words.moved_meanwhile) from None
        except (InvalidInputError, RefusedError) as error:
            raise _refusal(f"rename {old_path.spelling} to {new_path.spelling}", error) from None
        return self._words.renamed(old_path.spelling, new_path.spelling)

    def clear(self) -> None:
        with suppress(MemoryNotFoundError):  # it was empty
            self._memories.delete_tree(self._memory_store_id, self._base or "/", actor=self.actor, cause=self.cause)

    # -- reading -----------------------------------------------------------------------------------

    def _locate(self, path: MemoryPath) -> str:
        """The place in the store; `/` is the whole store."""
        location = self._base + path.path[len(ROOT) :]
        if self._base:
            try:
                check_path(location)
            except InvalidPathError as error:
                raise invalid(path.spelling, error.reason) from None
        return location or "/"

    def _head(self, location: str) -> Memory | None:
        try:
            return self._memories.at_path(self._memory_store_id, location)
        except MemoryNotFoundError:
            return None

    def _exists(self, path: MemoryPath) -> bool:
        return path.is_root or bool(self._memories.entries(self._memory_store_id, self._locate(path)))

    def _show_file(self, spelling: str, text: str, view_range: tuple[int, int] | None) -> str:
        words = self._words
        # A text has at least as many characters as newlines: no need to count in nearly all of them.
        if len(text) >= MAX_LINES and text.count("\n") >= MAX_LINES:
            raise MemoryToolError(words.too_many_lines(spelling))
        if view_range is not None and words.checks_ranges:
            self._check_range(text, *view_range)
        return words.file_header(spelling) + edits.view(text, view_range)

    def _check_range(self, text: str, start: int, end: int) -> None:
        if start < 1 or (end != -1 and end < start):
            raise MemoryToolError(self._words.bad_view_range(start, end))
        line_count = text.count("\n") + 1
        if start > line_count:
            raise MemoryToolError(self._words.range_past_end(start, line_count))

    # -- editing -----------------------------------------------------------------------------------

    def _edit(self, command: EditCommand, path: MemoryPath, edit: Callable[[str], str]) -> str:
        """Edit the memory at a path, and give its new text. An edit that changes nothing makes no version."""
        try:
            if path.is_root:
                raise MemoryNotFoundError(ROOT)
            return self._apply(self._locate(path), edit)
        except MemoryNotFoundError:
            is_directory = self._exists(path)
            raise MemoryToolError(self._words.cannot_edit(command, path.spelling, is_directory=is_directory)) from None
        except (InvalidInputError, RefusedError) as error:
            raise _refusal(f"edit {path.spelling}", error) from None

    def _apply(self, location: str, edit: Callable[[str], str]) -> str:
        """Read, edit, and write if nobody wrote in between: faster than to lock, edit and write."""
        for _ in range(_UNLOCKED_TRIES):
            memory = self._memories.at_path(self._memory_store_id, location)
            old = _text(memory)
            new = edit(old)
            if new == old:
                return new
            # Gone in between counts as changed: the next read says what is there now.
            with suppress(PreconditionFailedError, MemoryNotFoundError):
                self._memories.update(
                    memory.id,
                    memory_store_id=self._memory_store_id,
                    content=new,
                    precondition=memory.content_sha256,
                    actor=self.actor,
                    cause=self.cause,
                )
                return new
        return _text(
            self._memories.edit(self._memory_store_id, location, edit, actor=self.actor, cause=self.cause, view="full")
        )

    # -- explaining --------------------------------------------------------------------------------

    def _why_no_create(self, path: MemoryPath, conflicting_path: str) -> MemoryToolError:
        if self._locate(path).startswith(conflicting_path + "/"):
            return MemoryToolError(self._words.cannot_create_below(path.spelling, self._tool_path(conflicting_path)))
        return MemoryToolError(self._words.already_exists(path.spelling))

    def _why_no_rename(
        self, old_path: MemoryPath, new_path: MemoryPath, otherwise: Callable[[str, str], str]
    ) -> MemoryToolError:
        """The first reason that is found, in the order in which the SDK looks (CONTRACT A.6)."""
        words, old, new = self._words, old_path.spelling, new_path.spelling
        if self._exists(new_path):
            return MemoryToolError(words.destination_exists(new))
        if not self._exists(old_path):
            return MemoryToolError(words.nothing_to_move(old))
        location = self._locate(old_path)
        for ancestor in ancestors(self._locate(new_path)):
            if ancestor != location and self._head(ancestor):
                return MemoryToolError(words.cannot_rename_below(old, new, self._tool_path(ancestor)))
        return MemoryToolError(otherwise(old, new))

    def _tool_path(self, location: str) -> str:
        return ROOT + location[len(self._base) :]


def _base(scope: str | None) -> str:
    if scope is None:
        return ""
    if "/" in scope:
        hint = "It is a name such as alice: the memories below /alice are what is seen."
        raise InvalidInputError(f"the scope is {scope!r:.80}, not one segment of a path", hint=hint)
    return check_path(f"/{scope}")


def _check_option(name: str, value: str, values: tuple[str, ...]) -> None:
    if value not in values:
        raise InvalidInputError(f"{name}={value!r} is none of {', '.join(map(repr, values))}")


def _text(memory: Memory) -> str:
    assert memory.content is not None  # the full view was asked for
    return memory.content


def _refusal(deed: str, error: InvalidInputError | RefusedError) -> MemoryToolError:
    """What the model is told where the rules of the store say no: nothing of ids or of the machine."""
    match error:
        case StoreArchivedError():
            reason = "the memory store is archived and read-only"
        case CapacityError():
            reason = f"the memory store is full, it holds {error.limit:,} files"
        case ContentTooLargeError():
            reason = f"the file would have {error.size_bytes:,} bytes, the limit is {error.limit_bytes:,}"
        case InvalidContentError() | InvalidPathError():
            reason = error.reason
        case _:
            reason = "the memory store does not allow it"
    return MemoryToolError(f"Cannot {deed}: {reason}")
