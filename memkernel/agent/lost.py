"""A tool's failure that is not the model's: the model reads one sentence of it, the person the error itself."""

from __future__ import annotations


class KeepsLost:
    """Keeps the first such failure until the loop, before it asks the model again, raises it to the person."""

    lost: Exception | None = None
    """The first failure that is not the model's (a lost database, a lost sandbox)."""

    def keep_lost(self, error: Exception) -> None:
        """Keep a failure, where none is kept yet."""
        self.lost = self.lost or error

    def raise_lost(self) -> None:
        """Raise what was kept in `lost`, if anything, once. The agent loop calls it before each request."""
        error, self.lost = self.lost, None
        if error is not None:
            raise error
