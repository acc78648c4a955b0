"""A mount's baseline in this process: what is on disk, the store's heads, and how far the database knows of it."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from memkernel.errors import SyncError
from memkernel.store.mount_records import Entry, Heads, MountState, Published, Pulse
from memkernel.store.mounts import FORMAT, Mounts

_TITLE: Final = "memkernel mount"


class Baseline:
    """What a mount last published, kept in memory beside its rows in the database.

    Attributes:
        entries: path to what is on disk there.
        heads: the store, as it was last read.
        is_ready: False where nobody vouches for the files: they are no edits (Decision 11).
        is_unsure: whether files may be ahead of the entries, because a process ended while it wrote them.
    """

    def __init__(
        self, mounts: Mounts, memory_store_id: str, session_id: str, *, nonce_file: Path, identity: str
    ) -> None:
        """Nothing is read yet.

        Args:
            mounts: the database's side.
            memory_store_id: the store.
            session_id: whose mount it is.
            nonce_file: lies beside the mount.
            identity: of the mount's folder; for another folder in its place the nonce does not count.
        """
        self._mounts, self._nonce_file, self._identity = mounts, nonce_file, identity
        self._place = (memory_store_id, session_id)
        self._store_id = memory_store_id
        self._loaded = False
        self._nonce = ""
        self._is_noted = False  # the nonce lies beside the mount
        self._seq = 0
        self._is_told = False  # the database knows that files may be ahead of its entries
        self._was_interrupted = False
        self._pending: dict[str, Entry | None] = {}
        self.entries: dict[str, Entry] = {}
        self.heads = Heads(0, False, ())
        self.is_ready = False
        self.is_unsure = False

    def load(self) -> None:
        """Read the baseline, where that was not done, or something is not sure any more.

        Raises:
            SyncError: the baseline is another store's, or of another format.
            DatabaseUnavailableError: the server does not answer.
        """
        if self._loaded:
            return
        noted = self._noted()
        record = self._mounts.open(*self._place)
        self.entries = record.baseline
        for path, entry in self._pending.items():  # of an earlier moment of this process
            self._set(path, entry)
        self._seq, self._is_told = record.seq, record.is_pulling
        if self.is_ready and record.nonce == self._nonce == noted:
            self.is_unsure = self._was_interrupted
        else:
            self._is_noted = noted is not None and noted == record.nonce
            self._nonce = noted if noted is not None and self._is_noted else secrets.token_hex(16)
            self.is_ready = self._is_noted and record.state == "ready"
            self.is_unsure, self._is_told = record.is_pulling, record.is_pulling and self._is_noted
        self.heads = self._mounts.heads(self._store_id)
        self._loaded, self._was_interrupted = True, False

    def forget(self, *, interrupted: bool = False) -> None:
        """Read what the database says again: it is not known what became of a change.

        Args:
            interrupted: nor is it known whether a file was written.
        """
        self._loaded = False
        self._was_interrupted = self._was_interrupted or interrupted

    def pulse(self) -> Pulse:
        """How the store and the session stand now."""
        return self._mounts.pulse(*self._place)

    def bring_up(self, pulse: Pulse) -> Heads:
        """The heads, read again where the store has changed."""
        if (pulse.seq, pulse.archived) != (self.heads.seq, self.heads.archived):
            self.heads = self._mounts.heads(self._store_id, self.heads)
        return self.heads

    def is_behind(self, heads: Heads) -> bool:
        """Whether the store has changed since the files were brought up to it."""
        return heads.seq != self._seq

    def known(self, files: Iterable[tuple[str, bytes]]) -> frozenset[tuple[str, bytes]] | None:
        """Of these files those that the store itself may have brought; None where the entries are exact."""
        if self.is_ready and not self.is_unsure:
            return None
        return frozenset(self._mounts.brought(self._store_id, files, self._seq if self.is_ready else 0))

    def published(self, published: Published, unlike: Iterable[str], *, pulls: bool) -> None:
        """The mount's own changes are saved, and the database has their entries, except for the paths `unlike`."""
        apart = set(unlike)
        self.heads = published.heads
        self._is_told = self._is_told or pulls
        for version in published.versions:
            if version.path is None or version.path in apart:
                continue
            self._pending.pop(version.path, None)
            head = self.heads.by_path.get(version.path)
            self._set(version.path, head and Entry(head.memory_id, head.version_id, head.sha256))

    def begin_pull(self, *, restores: bool) -> None:
        """Tell the database that files are about to be written or removed.

        Args:
            restores: whether changes are undone that were put aside: until that is done, no file is an edit.

        Raises:
            DatabaseUnavailableError: the server does not answer; nothing may be written.
        """
        state: MountState = "ready" if self.is_ready and not restores else "uninitialised"
        if not self._is_told or state != "ready":
            self._mounts.begin_pull(*self._place, state, self._nonce)
            self._is_told = True

    def set(self, path: str, entry: Entry | None) -> None:
        """This is on disk at the path now; the database is told by `end_pull`."""
        self._pending[path] = entry
        self._set(path, entry)

    def _set(self, path: str, entry: Entry | None) -> None:
        if entry is None:
            self.entries.pop(path, None)
        else:
            self.entries[path] = entry

    def end_pull(self) -> None:
        """All files are what the entries say: tell the database, where it does not know it yet.

        Raises:
            SyncError: another process has taken the mount over, or the session is gone.
            DatabaseUnavailableError: the server does not answer; it is told next time.
        """
        if not self._pending and not self._is_told and self.is_ready:
            self._seq = self.heads.seq
            return
        if not self._is_noted:
            self.begin_pull(restores=False)
            self._note()
            self._is_noted = True
        self._mounts.end_pull(*self._place, self._nonce, self.heads.seq, self._pending, done=True)
        self._pending.clear()
        self._is_told = self.is_unsure = False
        self.is_ready, self._seq = True, self.heads.seq

    def _noted(self) -> str | None:
        """The nonce that lies beside the mount."""
        try:
            lines = self._nonce_file.read_text(encoding="utf-8").splitlines()
        except (FileNotFoundError, UnicodeDecodeError):
            return None
        if len(lines) < 3 or not lines[0].startswith(_TITLE):
            return None
        if lines[0] != f"{_TITLE} {FORMAT}":
            raise SyncError(f"the mount is in another format: {lines[0]}", hint="Update memkernel.")
        if lines[1] != self._store_id:
            raise SyncError(
                f"the mount belongs to another memory store, {lines[1]}", hint="`%sandbox stop`, then start."
            )
        return lines[2] if lines[3:] == [self._identity] else None

    def _note(self) -> None:
        text = f"{_TITLE} {FORMAT}\n{self._store_id}\n{self._nonce}\n{self._identity}\n"
        handle, name = tempfile.mkstemp(prefix=".nonce-", dir=self._nonce_file.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self._nonce_file)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(name)
            raise
