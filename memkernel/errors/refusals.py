"""The rules say no."""

from __future__ import annotations

from collections.abc import Sequence

from memkernel.errors.root import MemkernelError


class RefusedError(MemkernelError):
    """The rules of the store forbid it."""


class StoreArchivedError(RefusedError):
    """The store is archived, and so read-only, and attached to no new session (CONTRACT B.4)."""

    def __init__(self, store: str, *, name: str = "", attaching: bool = False) -> None:
        may_not = "no session can attach it" if attaching else "it can be read, not written"
        hint = "Attach another one: `%sandbox start --store OTHER`." if attaching else "Write to another store."
        super().__init__(f"memory store {name or store} is archived: {may_not}", hint=hint)
        self.store = store


class StoreAttachedError(RefusedError):
    """The store is attached to sessions that have not ended, and so cannot be deleted (CONTRACT B.3)."""

    def __init__(self, store: str, sessions: Sequence[str]) -> None:
        which = f"session {sessions[0]}" if len(sessions) == 1 else f"{len(sessions):,} sessions"
        super().__init__(
            f"memory store {store} is attached to {which}",
            hint="Stop the sandbox with `%sandbox stop`, or end the session with `memkernel session end`.",
        )
        self.store, self.sessions = store, tuple(sessions)


class SessionRunningError(RefusedError):
    """The session runs, or a sandbox of it may hold edits that are not saved yet: it is not deleted from elsewhere."""

    def __init__(self, session: str) -> None:
        super().__init__(
            f"session {session} has not ended: its sandbox may hold edits that are not saved yet, and must end first",
            hint="Stop the sandbox with `%sandbox stop`, or end the session with `memkernel session end`.",
        )
        self.session = session


class RunRunningError(RefusedError):
    """The run is still running, as far as can be seen from here: it is neither taken over nor deleted."""

    def __init__(self, run: str, *, seen_s: float | None = None) -> None:
        seen = "" if seen_s is None else f": its process wrote to it {max(seen_s, 0):,.0f} s ago"
        super().__init__(f"run {run} is still running{seen}", hint=f"Stop it first: `%agent stop {run}`.")
        self.run = run


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

    def __init__(self, pruned_through_seq: int, asked: str = "") -> None:
        through = f"the store's history up to change {pruned_through_seq:,} was pruned"
        hint = "`%memory log` shows the versions that are left."
        super().__init__(f"{asked}: {through}" if asked else through, hint=hint)
        self.pruned_through_seq = pruned_through_seq


class WorkspaceRoleError(RefusedError):
    """Workspaces cannot be kept apart here: the role that PostgreSQL binds to one of them cannot be used.

    `statements` are what an administrator of the server runs to mend it; empty where none would.
    """

    def __init__(self, reason: str, statements: Sequence[str] = (), *, hint: str = "") -> None:
        super().__init__(reason, hint=hint or f"An administrator of the server runs: {' '.join(statements)}")
        self.statements = tuple(statements)


class QueryRefusedError(RefusedError):
    """A query that could write, read files, reach out, or is not exactly one statement."""


class NotConfirmedError(RefusedError):
    """What cannot be undone was not confirmed by a person."""
