"""Versions of a store with the run and the tool call that made each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memkernel.handle.records import Records
from memkernel.models import Cause, MemoryVersion
from memkernel.render import caused_row

if TYPE_CHECKING:
    import pandas as pd

    from memkernel.handle.store import Store


class CausedVersions(Records[MemoryVersion]):
    """Versions; `causes` has, by their `seq`, what made them, where an agent did."""

    def __init__(self, versions: Records[MemoryVersion], causes: Mapping[int, Cause]) -> None:
        super().__init__(versions, kind=MemoryVersion, total=versions.total)
        self.causes = causes

    @classmethod
    def of(cls, store: Store, versions: Records[MemoryVersion]) -> CausedVersions:
        """The same versions, after a look at what made them."""
        seqs = [version.seq for version in versions]
        return cls(versions, store.connection.database.memory_versions.causes(store.id, seqs) if seqs else {})

    def df(self) -> pd.DataFrame:
        """The frame of the versions, and `run_id` and `tool_use_id`."""
        from memkernel.analytics.frames import series

        made_by = [self.causes.get(version.seq) for version in self]
        found = super().df()
        found["run_id"] = series([cause and cause.run_id for cause in made_by], str)
        found["tool_use_id"] = series([cause and cause.tool_use_id for cause in made_by], str)
        return found

    def _rows(self) -> Sequence[object]:
        shown = super()._rows()
        if not self.causes:
            return shown
        return [caused_row(version, self.causes.get(version.seq)) for version in self[: self.rows_shown]]
