"""The sandbox: its engine, its image, its mounts, and what could not be synced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memkernel.errors.conflicts import PreconditionFailedError
from memkernel.errors.root import MemkernelError


class SandboxError(MemkernelError):
    """A sandbox cannot do what was asked. A cell that fails is no error: its result says so."""


class EngineNotFoundError(SandboxError):
    """No Docker engine answers; `tried` lists where it was looked for, each with what was wrong."""

    def __init__(self, tried: Sequence[str] = ()) -> None:
        where = f" ({'; '.join(tried)})" if tried else ""
        super().__init__(
            f"no Docker engine answers{where}",
            hint="Start Docker, or use `--backend local`, which does not isolate the code from this machine.",
        )
        self.tried = tuple(tried)


class EngineError(SandboxError):
    """The Docker engine refused, or went away; in a cell `result` is what that had done until then."""

    def __init__(self, message: str, *, hint: str = "", result: Any = None) -> None:
        super().__init__(message, hint=hint)
        self.result = result


class ImageError(SandboxError):
    """The sandbox's image is not there, cannot be built, or lacks what a kernel needs."""

    def __init__(self, image: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"image {image}: {reason}", hint=hint)
        self.image = image


class MountError(SandboxError):
    """A folder cannot be mounted, or the sandbox does not see it as it is here."""

    def __init__(self, path: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{path} cannot be mounted: {reason}", hint=hint)
        self.path = path


class SandboxClosedError(SandboxError):
    """The sandbox was stopped, or its container was removed; in a cell `result` is what that had done until then."""

    def __init__(self, message: str = "the sandbox is not running", *, result: Any = None) -> None:
        super().__init__(message, hint="`%sandbox start` starts a new one; what was saved is in the store.")
        self.result = result


class SyncError(MemkernelError):
    """A mount cannot be synced; what lies in it is kept.

    After a cell or a whole sync `report` is its SyncReport, and `result` the cell's CellResult.
    """

    def __init__(self, message: str, *, hint: str = "", report: Any = None, result: Any = None) -> None:
        super().__init__(message, hint=hint)
        self.report, self.result = report, result


class SessionOverError(SyncError):
    """The session of a mount was deleted or has ended: nothing can be saved in its name any more."""


class SyncConflictError(PreconditionFailedError):
    """The store did not take changes of a mount; their texts were put aside (CONTRACT 0.3, row 11).

    `report` is the SyncReport, `result` the CellResult of the cell that wrote them (None after a mere sync). `reason`
    is the first path's, as a sentence about it goes on.
    """

    def __init__(
        self,
        paths: Sequence[str],
        report: Any = None,
        result: Any = None,
        *,
        reason: str = "was changed in the store meanwhile",
    ) -> None:
        more = f" with {len(paths) - 1:,} more" if len(paths) > 1 else ""
        MemkernelError.__init__(
            self,
            f"{paths[0]} {reason}; put aside{more}",
            hint="`%sandbox changes` shows both texts; `%sandbox resolve PATH mine|theirs|both` settles one.",
        )
        self.path, self.expected, self.actual = paths[0], None, None
        self.report, self.result = report, result


class CellFailedError(MemkernelError):
    """The code of a `%%sandbox` cell failed, ran out of time or memory, or was interrupted; `result` tells all.

    Raised for the notebook only, so that the cells below do not run: `mk.Sandbox` returns the result instead.
    """

    def __init__(self, message: str, result: Any = None, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.result = result

    def _render_traceback_(self) -> list[str]:
        """The traceback of the code itself, where it raised an exception."""
        error = getattr(self.result, "error", None)
        shown = list(error.traceback) if error is not None and self.result.status == "error" else []
        return shown or super()._render_traceback_()
