"""What the mounts of sessions last published, and how their changes reach a store (CONTRACT D).

A mount's changes and its own rows of the baseline are one transaction; what is pulled into it enters the baseline
afterwards, by `end_pull`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from psycopg import pq

from memkernel import ids
from memkernel.errors import SessionNotFoundError, StoreNotFoundError, SyncError
from memkernel.models import Actor, Cause, Limits, MemoryVersion
from memkernel.store import batches, mount_queries, queries, rows
from memkernel.store.connections import StoreConnection
from memkernel.store.contact import Contact
from memkernel.store.mount_records import (
    Edit,
    Entry,
    Head,
    Heads,
    Judge,
    MountRecord,
    MountState,
    Published,
    Pulse,
)

FORMAT: Final = 1


class Mounts:
    """The mounts of the sessions of a database."""

    def __init__(self, contact: Contact, limits: Limits) -> None:
        self._contact = contact
        self.limits = limits

    def open(self, memory_store_id: str, session_id: str) -> MountRecord:
        """The mount's record; a new one is uninitialised.

        Raises:
            StoreNotFoundError, SessionNotFoundError: no such store; no such session.
            SyncError: the baseline is of another format.
            DatabaseUnavailableError: the server does not answer.
        """

        def read(connection: StoreConnection) -> MountRecord:
            result = connection.run(mount_queries.MOUNT_OPEN, memory_store_id, session_id, FORMAT)
            if not result.ntuples:
                raise SessionNotFoundError(session_id)
            _check_format(rows.number(result.get_value(0, 0)))
            nonce = result.get_value(0, 3)
            return MountRecord(
                state=cast(MountState, rows.text(result.get_value(0, 1))),
                is_pulling=result.get_value(0, 2) == b"\x01",
                nonce=None if nonce is None else nonce.decode(),
                seq=rows.number(result.get_value(0, 4)),
                baseline=_entries(connection.run(mount_queries.MOUNT_ENTRIES, memory_store_id, session_id)),
            )

        return self._contact.read(read)

    def pulse(self, memory_store_id: str, session_id: str) -> Pulse:
        """How the store and the session stand.

        Raises:
            StoreNotFoundError: there is no such store.
            DatabaseUnavailableError: the server does not answer.
        """

        def read(connection: StoreConnection) -> Pulse:
            result = connection.run(mount_queries.MOUNT_PULSE, memory_store_id, session_id)
            if not result.ntuples:
                raise StoreNotFoundError(memory_store_id)
            get = result.get_value
            status = get(0, 2)
            return Pulse(rows.number(get(0, 0)), get(0, 1) == b"\x01", None if status is None else status.decode())

        return self._contact.read(read)

    def heads(self, memory_store_id: str, since: Heads | None = None) -> Heads:
        """All live memories; `since` are those that are known already.

        Raises:
            StoreNotFoundError: there is no such store.
            DatabaseUnavailableError: the server does not answer.
        """
        return self._contact.read(lambda connection: _heads(connection, memory_store_id, since))

    def texts(self, memory_store_id: str, version_ids: Iterable[str]) -> dict[str, bytes]:
        """The texts of versions by their ids; a redacted version is left out.

        Raises:
            DatabaseUnavailableError: the server does not answer.
        """
        wanted = list(version_ids)
        return self._contact.read(lambda connection: _texts(connection, memory_store_id, wanted)) if wanted else {}

    def saved_hashes(self, memory_store_id: str, sha256s: Iterable[bytes]) -> set[bytes]:
        """Of these hashes, those of texts that some version of the store had.

        Raises:
            DatabaseUnavailableError: the server does not answer.
        """
        wanted = [sha256.hex() for sha256 in sha256s]
        if not wanted:
            return set()

        def read(connection: StoreConnection) -> set[bytes]:
            result = connection.run(mount_queries.VERSION_HASHES, memory_store_id, wanted)
            return {result.get_value(row, 0) or b"" for row in range(result.ntuples)}

        return self._contact.read(read)

    def brought(
        self, memory_store_id: str, files: Iterable[tuple[str, bytes]], after_seq: int
    ) -> set[tuple[str, bytes]]:
        """Of these paths with their hashes, those that versions after a seq put there: no other path's text counts.

        Raises:
            DatabaseUnavailableError: the server does not answer.
        """
        wanted = list(files)
        if not wanted:
            return set()
        places, hashes = [path for path, _ in wanted], [sha256.hex() for _, sha256 in wanted]

        def read(connection: StoreConnection) -> set[tuple[str, bytes]]:
            result = connection.run(mount_queries.VERSION_PLACES, memory_store_id, places, hashes, after_seq)
            get = result.get_value
            return {(rows.text(get(row, 0)), get(row, 1) or b"") for row in range(result.ntuples)}

        return self._contact.read(read)

    def publish(
        self, memory_store_id: str, session_id: str, heads: Heads, judge: Judge, *, cause: Cause | None = None
    ) -> Published:
        """Make a mount's changes, as `judge` wants them on the heads that it is handed under the store's lock.

        The session is who made them. What becomes of the baseline's rows is one with them.

        Raises:
            StoreNotFoundError, SessionNotFoundError: no such store; no such session.
            CapacityError, PathConflictError: the judge did not mind, but the store does.
            DatabaseUnavailableError: the server was lost; where `saved` is None, open the mount again to know.
        """
        commit = _Commit(memory_store_id, session_id, heads, judge, self.limits.memories_per_store, cause)
        return self._contact.change(commit.run, commit.find, memory_store_id=memory_store_id)

    def begin_pull(self, memory_store_id: str, session_id: str, state: MountState, nonce: str) -> None:
        """Note that files are about to be written or removed. `uninitialised`: what is on disk is no edit.

        Raises:
            DatabaseUnavailableError: the server does not answer.
        """
        values = (memory_store_id, session_id, state, nonce)
        self._contact.change(
            lambda connection: connection.run(mount_queries.MOUNT_BEGIN_PULL, *values),
            lambda _: None,
            memory_store_id=memory_store_id,
        )

    def end_pull(
        self,
        memory_store_id: str,
        session_id: str,
        nonce: str,
        seq: int,
        entries: Mapping[str, Entry | None],
        *,
        done: bool,
    ) -> None:
        """Note what is on disk now; `done`: all is as the store was at `seq`.

        Raises:
            SyncError: another process has taken the mount over, or the session is gone.
            DatabaseUnavailableError: the server does not answer.
        """
        gone = [path for path, entry in entries.items() if entry is None]
        there = [(path, entry) for path, entry in entries.items() if entry is not None]
        values = (
            *(memory_store_id, session_id, nonce, seq, done, gone),
            [path for path, _ in there],
            [entry.memory_id for _, entry in there],
            [entry.version_id for _, entry in there],
            [entry.sha256.hex() for _, entry in there],
        )

        def change(connection: StoreConnection) -> bool:
            return connection.run(mount_queries.MOUNT_END_PULL, *values).get_value(0, 0) == b"\x01"

        if not self._contact.change(change, lambda _: None, memory_store_id=memory_store_id):
            raise SyncError("the mount was taken over by another process, or its session was deleted")


@dataclass(slots=True)
class _Commit:
    """One transaction of `publish`, which finds itself again when its answer is lost."""

    store_id: str
    session_id: str
    heads: Heads
    judge: Judge
    limit: int
    cause: Cause | None
    _made: Published | None = field(default=None, init=False)

    def run(self, connection: StoreConnection) -> Published:
        self._made = None
        with connection.transaction():
            store = batches.begin(connection, self.store_id)
            heads = self.heads
            if (store.seq, store.archived) != (heads.seq, heads.archived):
                heads = _heads(connection, self.store_id, heads)
            judged = self.judge(heads, lambda version_ids: _texts(connection, self.store_id, list(version_ids)))
            if not judged.edits:
                return Published((), heads)
            batch, decided = self._batch(judged.edits)
            versions = batch.write(connection, store, decided)
            self._made = Published(versions, _after(heads, decided, versions))
            unlike = [edit.path for edit in judged.edits if not edit.on_disk]
            connection.run(
                mount_queries.MOUNT_PUBLISH,
                *(self.store_id, self.session_id, store.seq, len(decided), unlike, judged.pulls),
            )
        return self._made

    def find(self, connection: StoreConnection) -> Published | None:
        """What `run` would have answered, if its transaction was saved; None if it was not."""
        if self._made is None:
            return None
        version_ids = [version.id for version in self._made.versions]
        saved = connection.run(queries.VERSIONS_SAVED, self.store_id, version_ids)
        return self._made if rows.number(saved.get_value(0, 0)) else None

    def _batch(self, edits: Sequence[Edit]) -> tuple[batches.Batch, list[batches.Decided]]:
        decided = [_decided(position, edit) for position, edit in enumerate(edits)]
        return batches.Batch(
            store_id=self.store_id,
            wanted=[one.wanted for one in decided],
            version_ids=[ids.mint("memver") for _ in decided],
            limit=self.limit,
            actor=Actor("session_actor", self.session_id),
            cause=self.cause,
        ), decided


def _decided(position: int, edit: Edit) -> batches.Decided:
    wanted = batches.Wanted(edit.path, edit.content, edit.sha256, None)
    if edit.head is None:
        return batches.Decided(position, wanted, edit.operation, ids.mint("mem"), 1)
    return batches.Decided(position, wanted, edit.operation, edit.head.memory_id, edit.head.ordinal + 1)


def _after(heads: Heads, decided: Sequence[batches.Decided], versions: Sequence[MemoryVersion]) -> Heads:
    gone = [one.memory_id for one in decided if one.operation == "deleted"]
    made = [
        Head(
            one.memory_id, one.wanted.path, version.id, one.wanted.sha256, len(one.wanted.data or b""), version.ordinal
        )
        for one, version in zip(decided, versions, strict=True)
        if one.wanted.sha256 is not None
    ]
    return heads.changed(heads.seq + len(decided), heads.archived, gone, made)


def _check_format(found: int) -> None:
    if found != FORMAT:
        raise SyncError(
            f"the mount's baseline has format {found}, this version knows {FORMAT}", hint="Update memkernel."
        )


def _entries(result: pq.abc.PGresult) -> dict[str, Entry]:
    get = result.get_value
    return {
        rows.text(get(row, 0)): Entry(rows.text(get(row, 1)), rows.text(get(row, 2)), get(row, 3) or b"")
        for row in range(result.ntuples)
    }


def _heads(connection: StoreConnection, store_id: str, since: Heads | None) -> Heads:
    if since is not None:
        result = connection.run(mount_queries.MOUNT_CHANGES, store_id, since.seq)
        if result.ntuples and result.get_value(0, 8) != b"\x01":
            changed = [_head(result, row) for row in range(result.ntuples) if result.get_value(row, 3) is not None]
            touched = [rows.text(result.get_value(row, 2)) for row in range(result.ntuples)]
            return since.changed(*_seq_and_archived(result), touched, changed)
    result = connection.run(mount_queries.MOUNT_HEADS, store_id)
    if not result.ntuples:
        raise StoreNotFoundError(store_id)
    there = [_head(result, row) for row in range(result.ntuples) if result.get_value(row, 3) is not None]
    return Heads(*_seq_and_archived(result), there)


def _seq_and_archived(result: pq.abc.PGresult) -> tuple[int, bool]:
    return rows.number(result.get_value(0, 0)), result.get_value(0, 1) == b"\x01"


def _head(result: pq.abc.PGresult, row: int) -> Head:
    get = cast(Callable[[int, int], bytes], result.get_value)  # it has a path, and then all of it is there
    return Head(
        get(row, 2).decode(),
        get(row, 3).decode(),
        get(row, 4).decode(),
        get(row, 5),
        int.from_bytes(get(row, 6)),
        int.from_bytes(get(row, 7)),
    )


def _texts(connection: StoreConnection, store_id: str, version_ids: Sequence[str]) -> dict[str, bytes]:
    result = connection.run(mount_queries.VERSION_TEXTS, store_id, version_ids)
    return {rows.text(result.get_value(row, 0)): result.get_value(row, 1) or b"" for row in range(result.ntuples)}
