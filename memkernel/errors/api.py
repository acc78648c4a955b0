"""What only a request to the Memory API can be refused for (CONTRACT B.1.1)."""

from __future__ import annotations

from collections.abc import Mapping

from memkernel.errors.root import MemkernelError


class ApiError(MemkernelError):
    """A request that no handler sees: no key (401), no right (403), no such route (404, 405), too large (413)."""

    def __init__(
        self, status_code: int, message: str, *, headers: Mapping[str, str] | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.status_code, self.headers = status_code, dict(headers or {})
