"""The state is not what the caller thought."""

from __future__ import annotations

from memkernel.errors.root import MemkernelError


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


class RunTakenOverError(ConflictError):
    """Another process goes on with the run's conversation: this one may not write to it any more."""

    def __init__(self, run: str) -> None:
        super().__init__(
            f"run {run} was taken over by another process, which took this one for gone",
            hint="What it had saved by then stays. Look at it with `%agent show`, and go on where it was taken over.",
        )
        self.run = run
