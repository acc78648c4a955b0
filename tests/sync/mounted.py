"""A store with a mount, without any sandbox: the test itself is what writes into the folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from memkernel.models import Access, Actor, AttachmentParams, Change, MemoryVersion, StoreReport
from memkernel.store import Database
from memkernel.sync.engine import MountFolders, MountSync
from memkernel.sync.rejected import RejectedFolder, RejectedRecord

ANN = Actor("user_actor", "ann")


@dataclass
class Mounted:
    """A mount of one store. `sync` raises what was in trouble."""

    database: Database
    store_id: str
    session_id: str
    home: Path
    mount: MountSync
    rejected: RejectedFolder
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def files(self) -> Path:
        return self.home / "files"

    def reopen(self) -> None:
        """As a new process would: nothing is remembered."""
        self.mount.close()
        self.mount = open_mount(self.database, self.session_id, self.home, self.rejected, **self.options)

    def sync(self, **options: Any) -> StoreReport:
        report = self.mount.sync(**options)
        if report.trouble:
            raise report.trouble
        return report

    def write(self, path: str, content: str | bytes) -> None:
        """In the sandbox: by rename, as editors do."""
        file = self.files / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        new = self.home / "new"
        new.write_bytes(content.encode() if isinstance(content, str) else content)
        new.replace(file)

    def remove(self, path: str) -> None:
        """In the sandbox."""
        (self.files / path.lstrip("/")).unlink()

    def on_disk(self) -> dict[str, bytes]:
        """Every regular file of the mount."""
        return {
            "/" + str(file.relative_to(self.files)): file.read_bytes()
            for file in self.files.rglob("*")
            if file.is_file() and not file.is_symlink()
        }

    def remote(self, *changes: tuple[str, str | None]) -> None:
        """In the store: somebody else."""
        self.database.memories.apply(self.store_id, [Change(*change) for change in changes], actor=ANN)

    def in_store(self) -> dict[str, bytes]:
        """Every memory of the store."""
        heads = self.database.mounts.heads(self.store_id)
        texts = self.database.mounts.texts(self.store_id, [head.version_id for head in heads.by_id.values()])
        return {path: texts[head.version_id] for path, head in heads.by_path.items()}

    def versions(self) -> list[MemoryVersion]:
        """Every version of the store, oldest first."""
        page = self.database.memory_versions.list(self.store_id, limit=100)
        assert page.next_page is None
        return page.data[::-1]

    def put_aside(self) -> dict[str, bytes | None]:
        """The rejected changes by path."""
        return {one.path: one.content for one in self.rejections()}

    def rejections(self) -> list[RejectedRecord]:
        return self.rejected.list(memory_store_id=self.store_id)


def saved(report: StoreReport) -> list[str]:
    """The paths of which a sync made versions."""
    return [one.path or "" for one in (*report.created, *report.modified, *report.deleted, *report.merged)]


def open_mount(database: Database, session_id: str, home: Path, rejected: RejectedFolder, **options: Any) -> MountSync:
    """The mount whose folders are in `home`."""
    folders = MountFolders(home / "files", home / "nonce", home / "aside")
    folders.files.mkdir(parents=True, exist_ok=True)
    (attachment,) = database.sessions.resources(session_id).data
    return MountSync(database, session_id, attachment, folders, rejected, **options)


class Mounter:
    """Makes stores and mounts them."""

    def __init__(self, database: Database, home: Path) -> None:
        self.database, self._home = database, home
        self._open = ExitStack()
        self._count = 0

    def __call__(
        self,
        *memories: tuple[str, str],
        store_id: str | None = None,
        access: Access = "read_write",
        database: Database | None = None,
        **options: Any,
    ) -> Mounted:
        """A store of these memories, mounted and synced once."""
        self._count += 1
        if store_id is None:
            store_id = self.database.memory_stores.create(name=f"store {self._count}").id
        if memories:
            self.database.memories.apply(store_id, [Change(*memory) for memory in memories], actor=ANN)
        session = self.database.sessions.create([AttachmentParams(store_id, access=access)])
        home = self._home / f"mount-{self._count}"
        rejected = RejectedFolder(self._home / "rejected")
        database = database or self.database
        mount = open_mount(database, session.id, home, rejected, **options)
        mounted = Mounted(database, store_id, session.id, home, mount, rejected, options)
        self._open.callback(lambda: mounted.mount.close())  # noqa: PLW0108  # it may be another one by then
        mounted.sync()
        return mounted

    def close(self) -> None:
        self._open.close()


@pytest.fixture
def mounter(database: Database, tmp_path: Path) -> Iterator[Mounter]:
    """Mounts stores of a fresh database."""
    mounter = Mounter(database, tmp_path)
    yield mounter
    mounter.close()
