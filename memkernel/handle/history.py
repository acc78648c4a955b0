"""The history of memories as a view asks for it: by the ids of versions, also where their memory is gone."""

from __future__ import annotations

from dataclasses import dataclass

from memkernel.errors import PreconditionFailedError, RedactedError
from memkernel.handle.reading import StoreReading
from memkernel.handle.store import Store
from memkernel.handle.versions import version_before
from memkernel.models import Cause, Lineage, MemoryVersion, View


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore came to: the newest version now. `moved`: it is one that the person has not seen, and nothing
    was written."""

    version: MemoryVersion
    moved: bool = False


@dataclass(frozen=True, slots=True)
class Erasure:
    """What a redaction of a version would erase, and what else of the store holds the same text.

    Attributes:
        version: the version, without its content.
        is_head: it is the current text of a live memory, which is not redacted.
        others: the other versions with this text.
        heads: those with this text that are heads, and so keep it.
        run_ids: the runs of agents whose transcripts may hold it, newest first.
    """

    version: MemoryVersion
    is_head: bool
    others: tuple[MemoryVersion, ...]
    heads: tuple[MemoryVersion, ...]
    run_ids: tuple[str, ...] = ()

    @property
    def refusal(self) -> str:
        """Why it cannot be done, and the way out; `""` where it can."""
        if self.is_head:
            return (
                f"@{self.version.ordinal} is the current text of {self.version.path}, which is not erased. "
                "Restore another version or edit the memory first: then this one can be redacted."
            )
        return f"@{self.version.ordinal} is redacted already." if self.version.redacted_at else ""

    @property
    def kept(self) -> str:
        """Which live memories keep the text, in a sentence; `""` where none does."""
        heads = [head for head in self.heads if head.id != self.version.id]
        if not heads:
            return ""
        paths = ", ".join(f"{head.path}" for head in heads[:3])
        more = f" and {len(heads) - 3:,} more" if len(heads) > 3 else ""
        subject = "1 live memory holds" if len(heads) == 1 else f"{len(heads):,} live memories hold"
        return f"{subject} this text and keeps it: {paths}{more}. Edit or delete what should not, then redact it there."

    @property
    def transcripts(self) -> str:
        """Which runs may still tell the text, in a sentence; `""` where none does."""
        if not self.run_ids:
            return ""
        named = f"{', '.join(self.run_ids[:3])}{f' and {len(self.run_ids) - 3:,} more' if self.run_ids[3:] else ''}"
        whose = "1 run of an agent" if len(self.run_ids) == 1 else f"{len(self.run_ids):,} runs of agents"
        return f"What was kept of {whose} may still hold this text: {named}. `%agent rm RUN` forgets a run."


class History:
    """The versions of the memories of one store."""

    def __init__(self, store: StoreReading) -> None:
        self.store = store
        self._versions = store.connection.database.memory_versions

    def version(self, memory_version_id: str, *, view: View = "full") -> MemoryVersion:
        """The version with this id.

        Raises:
            VersionNotFoundError: there is none in this store.
        """
        return self._versions.retrieve(memory_version_id, memory_store_id=self.store.id, view=view)

    def cause(self, version: MemoryVersion) -> Cause | None:
        """The tool call that made a version; None where no agent did."""
        return self._versions.cause(self.store.id, version.id)

    def before(self, version: MemoryVersion, *, view: View = "basic") -> MemoryVersion | None:
        """The version before this one; None before the first.

        Raises:
            HistoryPrunedError: it was pruned.
        """
        return version_before(self.store.connection.database, version, view=view)

    def lineage(self, memory_id: str, *, before: int | None = None, limit: int = 200) -> Lineage:
        """The versions of a memory, alive or not, newest first, from below the ordinal `before` on."""
        return self._versions.lineage(self.store.id, memory_id, before=before, limit=limit)

    def newest(self, memory_id: str) -> MemoryVersion:
        """The newest version of a memory: its head, or its deletion."""
        return self.lineage(memory_id, limit=1).versions[0]

    def erasure(self, memory_version_id: str) -> Erasure:
        """What a redaction of this version would mean."""
        version = self.version(memory_version_id, view="basic")
        newest = self.newest(version.memory_id)
        is_head = newest.id == version.id and version.operation != "deleted"
        holders = self._versions.holders(self.store.id, version.content_sha256) if version.content_sha256 else []
        others = tuple(each.version for each in holders if not each.is_head and each.version.id != version.id)
        runs = self.store.connection.database.runs.of_version(self.store.id, version.id)
        return Erasure(version, is_head, others, tuple(each.version for each in holders if each.is_head), tuple(runs))


def restore(store: Store, memory_version_id: str, *, path: str = "", head: str = "") -> Restored:
    """Write an earlier text again, unless the head has moved since it was shown (fault 25).

    Args:
        store: the store.
        memory_version_id: the version whose text is wanted.
        path: where a deleted memory comes back; `""` is where it was.
        head: the id of the newest version that the person was shown; `""` does not ask.

    Raises:
        RedactedError: the text is gone.
    """
    history = History(store)
    wanted = history.version(memory_version_id, view="basic")
    if wanted.path is None:
        raise RedactedError(memory_version_id)
    newest = history.newest(wanted.memory_id)
    if head not in ("", newest.id):
        return Restored(newest, moved=True)
    try:
        memory = store.restore(path or wanted.path, memory_version_id, expect=newest.content_sha256)
    except PreconditionFailedError:  # it moved in this moment
        return Restored(history.newest(wanted.memory_id), moved=True)
    return Restored(history.version(memory.memory_version_id, view="basic"))
