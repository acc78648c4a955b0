"""What a mount does when the database, the disk, the store or the session gives way."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memkernel.errors import DatabaseUnavailableError, SessionOverError, StoreNotFoundError, SyncError
from memkernel.models import Limits
from memkernel.store import Database
from memkernel.store.connections import StoreConnection
from memkernel.store.statements import Parameter, Statement
from memkernel.sync import aside, rejected
from tests.fix_postgres import PostgresServer
from tests.store.proxy import LossyProxy, Side
from tests.sync.mounted import ANN, Mounter, saved

TWO = (("/a.md", "alpha\n"), ("/b.md", "beta\n"))


# -- merging -------------------------------------------------------------------------------------------

LINES = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


def test_edits_of_other_lines_are_merged_and_the_rest_is_saved_with_them(mounter: Mounter) -> None:
    mounted = mounter(("/a.md", LINES), *TWO[1:])
    mounted.remote(("/a.md", LINES.replace("six", "SIX")))
    mounted.write("/a.md", LINES.replace("two", "TWO"))
    mounted.write("/b.md", "edited\n")
    report = mounted.sync(on_conflict="merge")
    assert report.ok
    assert [one.path for one in report.merged] == ["/a.md"]
    assert [one.path for one in report.modified] == ["/b.md"]
    both = LINES.replace("two", "TWO").replace("six", "SIX").encode()
    assert mounted.on_disk() == mounted.in_store() == {"/a.md": both, "/b.md": b"edited\n"}
    assert len({one.created_at for one in mounted.versions()[3:]}) == 1
    assert len(mounted.versions()) == 5
    assert not mounted.sync().pulled


def test_under_merge_only_what_overlaps_is_put_aside(mounter: Mounter) -> None:
    mounted = mounter(("/a.md", LINES), *TWO[1:])
    mounted.remote(("/a.md", LINES.replace("two", "theirs")))
    mounted.write("/a.md", LINES.replace("two", "ours"))
    mounted.write("/b.md", "edited\n")
    report = mounted.sync(on_conflict="merge")
    assert [one.reason for one in report.conflicts] == [
        "was edited both here and in the store: the same lines were changed"
    ]
    assert [one.path for one in report.modified] == ["/b.md"]
    assert mounted.put_aside() == {"/a.md": LINES.replace("two", "ours").encode()}
    assert mounted.on_disk() == mounted.in_store()


def test_a_merge_whose_base_was_redacted_is_a_conflict(mounter: Mounter) -> None:
    mounted = mounter(("/a.md", LINES), *TWO[1:])
    mounted.remote(("/a.md", LINES.replace("six", "SIX")))
    first = mounted.versions()[0]
    mounted.database.memory_versions.redact(first.id, memory_store_id=mounted.store_id, actor=ANN)
    mounted.write("/a.md", LINES.replace("two", "TWO"))
    report = mounted.sync(on_conflict="merge")
    assert [one.reason for one in report.conflicts] == [
        "was edited both here and in the store: the text that it was made from was redacted or pruned"
    ]
    assert mounted.on_disk() == mounted.in_store()


def test_a_merge_that_is_too_large_is_a_conflict(mounter: Mounter) -> None:
    base = "\n".join("x" * 100 for _ in range(600)) + "\n"
    mounted = mounter(("/a.md", base), *TWO[1:])
    mounted.remote(("/a.md", "y" * 40_000 + "\n" + base))
    mounted.write("/a.md", base + "z" * 40_000 + "\n")
    report = mounted.sync(on_conflict="merge")
    assert [one.reason for one in report.conflicts] == [
        "was edited both here and in the store: the two together have 140,602 bytes, the limit is 102,400"
    ]


def test_a_merge_that_is_what_the_store_has_makes_no_version(mounter: Mounter) -> None:
    mounted = mounter(("/a.md", LINES), *TWO[1:])
    mounted.remote(("/a.md", LINES.replace("two", "TWO").replace("six", "SIX")))
    mounted.write("/a.md", LINES.replace("two", "TWO"))
    report = mounted.sync(on_conflict="merge")
    assert report.ok
    assert report.pulled == ("/a.md",)
    assert len(mounted.versions()) == 3


# -- the store -----------------------------------------------------------------------------------------


def test_f242_changes_for_an_archived_store_are_put_aside(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.database.memory_stores.archive(mounted.store_id)
    mounted.write("/a.md", "edited\n")
    mounted.remove("/b.md")
    report = mounted.sync()
    assert {one.reason for one in report.conflicts} == {"was not saved: the memory store is archived"}
    assert mounted.put_aside() == {"/a.md": b"edited\n", "/b.md": None}
    assert mounted.on_disk() == mounted.in_store() == {path: text.encode() for path, text in TWO}
    assert mounted.sync().ok


def test_a_flood_of_files_is_put_aside_in_as_many_rounds_as_it_takes(mounter: Mounter, dsn: str) -> None:
    with Database(dsn, limits=Limits(memories_per_store=4)) as small:
        mounted = mounter(*TWO, database=small, max_files=10)
        for number in range(25):
            mounted.write(f"/{number:02}.md", str(number))
        mounted.write("/a.md", "edited\n")
        report = mounted.sync()
        assert mounted.on_disk() == mounted.in_store() == {path: text.encode() for path, text in TWO}
        flood = {f"/{number:02}.md": str(number).encode() for number in range(25)}
        assert mounted.put_aside() == flood | {"/a.md": b"edited\n"}
        assert len(report.conflicts) == 26
        assert not report.notes


def test_what_a_scan_does_not_reach_is_never_deleted_and_that_is_said(mounter: Mounter) -> None:
    mounted = mounter(*TWO, max_files=10)
    for number in range(25):
        (mounted.files / f"empty-{number}").mkdir()
    mounted.remove("/b.md")
    report = mounted.sync()
    assert report.notes == ("there are more than 10 files and folders; the rest was not looked at",)
    assert mounted.in_store() == {path: text.encode() for path, text in TWO}


def test_a_deleted_store_is_trouble_and_the_files_stay(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.database.sessions.update(mounted.session_id, status="terminated")
    with pytest.raises(SessionOverError, match="has ended"):
        mounted.sync()
    mounted.database.sessions.delete(mounted.session_id)
    with pytest.raises(SessionOverError, match="was deleted"):
        mounted.sync()
    mounted.database.memory_stores.delete(mounted.store_id)
    mounted.write("/a.md", "edited\n")
    assert isinstance(mounted.mount.sync().trouble, StoreNotFoundError)
    assert mounted.on_disk()["/a.md"] == b"edited\n"


def test_a_deleted_session_leaves_no_rows(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.database.sessions.delete(mounted.session_id)
    other = mounter(store_id=mounted.store_id)
    assert mounted.database.mounts.open(other.store_id, other.session_id).baseline.keys() == {"/a.md", "/b.md"}
    with pytest.raises(SyncError):
        mounted.database.mounts.end_pull(mounted.store_id, mounted.session_id, "n", 2, {}, done=True)


# -- read-only and reset -------------------------------------------------------------------------------


def test_a_read_only_mount_is_brought_up_and_never_scanned(mounter: Mounter) -> None:
    mounted = mounter(*TWO, access="read_only")
    mounted.remote(("/a.md", "theirs\n"))
    mounted.write("/b.md", "cannot be\n")
    report = mounted.sync()
    assert report.pulled == ("/a.md",)
    assert mounted.on_disk()["/b.md"] == b"cannot be\n"
    assert len(mounted.versions()) == 3


def test_a_read_only_mount_that_can_be_written_to_is_mended(mounter: Mounter) -> None:
    mounted = mounter(*TWO, access="read_only", enforced=False)
    mounted.write("/a.md", "ours\n")
    mounted.write("/new.md", "new\n")
    mounted.remove("/b.md")
    report = mounted.sync()
    assert report.ok
    assert report.notes == (
        "/a.md was changed, but the mount is read-only; its text was put aside",
        "/new.md was changed, but the mount is read-only; its text was put aside",
    )
    assert mounted.put_aside() == {"/a.md": b"ours\n", "/new.md": b"new\n"}
    assert mounted.on_disk() == mounted.in_store() == {path: text.encode() for path, text in TWO}
    assert len(mounted.versions()) == 2


def test_a_reset_puts_edits_aside_and_brings_the_store_back(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.remote(("/b.md", "theirs\n"))
    mounted.write("/a.md", "ours\n")
    mounted.write("/new.md", "new\n")
    report = mounted.mount.reset()
    assert report.ok
    assert len(report.notes) == 2
    assert mounted.put_aside() == {"/a.md": b"ours\n", "/new.md": b"new\n"}
    assert mounted.on_disk() == mounted.in_store() == {"/a.md": b"alpha\n", "/b.md": b"theirs\n"}
    mounted.write("/a.md", "ours again\n")
    assert [one.path for one in mounted.sync().modified] == ["/a.md"]


def test_the_status_tells_what_a_sync_would_do_and_does_not_hide_it(mounter: Mounter) -> None:
    mounted = mounter(*TWO, ("/c.md", "gamma\n"))
    mounted.write("/a.md", "ours\n")
    mounted.write("/new.md", "new\n")
    mounted.remove("/b.md")
    mounted.remote(("/c.md", "theirs\n"), ("/d.md", "theirs\n"))
    (mounted.files / "link").symlink_to("/")
    for _ in range(2):
        status = mounted.mount.status()
        assert (status.created, status.modified, status.deleted) == (("/new.md",), ("/a.md",), ("/b.md",))
        assert (status.local, status.remote) == (3, 2)
        assert [one.path for one in status.refused] == ["/link"]
    report = mounted.sync()
    assert [one.path for one in report.created + report.modified + report.deleted] == ["/new.md", "/a.md", "/b.md"]
    status = mounted.mount.status()
    assert (status.local, status.remote) == (0, 0)


def test_a_final_sync_saves_and_brings_nothing(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.remote(("/b.md", "theirs\n"))
    mounted.write("/a.md", "ours\n")
    report = mounted.sync(final=True, deep=True)
    assert [one.path for one in report.modified] == ["/a.md"]
    assert not report.pulled
    assert mounted.on_disk()["/b.md"] == b"beta\n"


# -- a database that is lost ---------------------------------------------------------------------------


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[LossyProxy]:
    proxy = LossyProxy(server.directory)
    yield proxy
    proxy.close()


@pytest.fixture
def distant(dsn: str, server: PostgresServer, proxy: LossyProxy) -> Iterator[Database]:
    """The same database behind the proxy."""
    with Database(dsn.replace(str(server.directory), str(proxy.directory)), reconnect_s=0.2) as database:
        yield database


REQUESTS = {
    "pulse": b"mount_pulse",
    "lock": b"batch_begin",
    "copy": b"COPY",
    "finish": b"batch_finish",
    "publish": b"mount_publish",
    "commit": b"COMMIT",
    "texts": b"content IS NOT NULL",
    "end": b"mount_end_pull",
}


@pytest.mark.parametrize("loss", [*itertools.product(REQUESTS, ("request", "reply"), (False, True))], ids=str)
def test_a_database_that_is_lost_costs_nothing_and_doubles_nothing(
    mounter: Mounter, distant: Database, proxy: LossyProxy, loss: tuple[str, Side, bool]
) -> None:
    what, side, then_refuse = loss
    mounted = mounter(("/a.md", LINES), *TWO[1:], database=distant)
    database, mounted.database = mounted.database, mounter.database
    mounted.remote(("/a.md", LINES.replace("six", "SIX")), ("/far.md", "far\n"))
    mounted.write("/a.md", LINES.replace("two", "TWO"))
    mounted.write("/new.md", "new\n")
    mounted.remove("/b.md")
    proxy.lose(side, REQUESTS[what], then_refuse=then_refuse)
    report = mounted.mount.sync(on_conflict="merge")
    assert proxy.cuts == 1
    assert (report.trouble is not None) == then_refuse
    if then_refuse:
        assert isinstance(report.trouble, DatabaseUnavailableError)
        assert mounted.on_disk()["/new.md"] == b"new\n"
    mounted.write("/later.md", "later\n")
    proxy.refuses = False
    assert mounted.sync(on_conflict="merge").ok
    both = LINES.replace("two", "TWO").replace("six", "SIX").encode()
    assert mounted.in_store() == {"/a.md": both, "/far.md": b"far\n", "/new.md": b"new\n", "/later.md": b"later\n"}
    assert mounted.on_disk() == mounted.in_store()
    assert len(mounted.versions()) == 8
    assert not mounted.rejections()
    database.close()


def test_a_conflict_is_told_once_whatever_is_lost_meanwhile(
    mounter: Mounter, distant: Database, proxy: LossyProxy
) -> None:
    mounted = mounter(*TWO, database=distant)
    mounted.database = mounter.database
    mounted.remote(("/a.md", "theirs\n"))
    mounted.write("/a.md", "ours\n")
    mounted.write("/c.md", "ours, too\n")
    proxy.lose("request", b"mount_begin_pull", then_refuse=True)
    report = mounted.mount.sync()
    assert [one.path for one in report.conflicts] == ["/a.md", "/c.md"]
    assert report.trouble
    proxy.refuses = False
    report = mounted.sync()  # what was put aside is undone, not saved after all
    assert not report.created
    assert not report.conflicts
    assert mounted.on_disk() == mounted.in_store() == {"/a.md": b"theirs\n", "/b.md": b"beta\n"}
    assert mounted.put_aside() == {"/a.md": b"ours\n", "/c.md": b"ours, too\n"}


# -- a disk that is full -------------------------------------------------------------------------------


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets every write of a file fail in the functions of one module, until told otherwise."""

    def fill(where: str) -> None:
        def refuse(*_: object, **__: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.undo()
        if where == "mount":
            monkeypatch.setattr(aside.Aside, "create", refuse)
        elif where == "rejected":
            monkeypatch.setattr(rejected.os, "fsync", refuse)

    return fill


@pytest.mark.parametrize("where", ["mount", "rejected"])
def test_a_full_disk_is_trouble_and_the_next_sync_goes_on(
    mounter: Mounter, full: Callable[[str], None], where: str
) -> None:
    mounted = mounter(*TWO)
    mounted.remote(("/a.md", "theirs\n"), ("/far.md", "far\n"))
    mounted.write("/a.md", "ours\n")
    mounted.write("/new.md", "new\n")
    full(where)
    report = mounted.mount.sync(on_conflict="merge")
    assert isinstance(report.trouble, SyncError)
    assert "no space left" in str(report.trouble).lower()
    assert [one.path for one in report.created] == ["/new.md"]
    assert mounted.on_disk()["/a.md"] == b"ours\n"
    full("nowhere")
    mounted.sync(on_conflict="merge")
    assert mounted.on_disk() == mounted.in_store()
    assert mounted.in_store() == {"/a.md": b"theirs\n", "/b.md": b"beta\n", "/far.md": b"far\n", "/new.md": b"new\n"}
    assert mounted.put_aside() == {"/a.md": b"ours\n"}
    assert len(mounted.versions()) == 5


# -- somebody writes meanwhile -------------------------------------------------------------------------


def test_files_are_read_while_nothing_in_the_sandbox_runs(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    said: list[str] = []

    @contextmanager
    def frozen() -> Generator[None]:
        mounted.write("/last.md", "written just before\n")
        said.append("frozen")
        yield
        mounted.write("/late.md", "written just after\n")
        said.append("thawed")

    mounted.sync(frozen=frozen)
    assert not said  # nothing was changed
    mounted.write("/a.md", "edited\n")
    report = mounted.sync(frozen=frozen)
    assert said == ["frozen", "thawed"]
    assert saved(report) == ["/last.md", "/a.md"]
    assert saved(mounted.sync()) == ["/late.md"]


def test_what_is_written_while_the_stores_version_comes_is_put_aside(
    mounter: Mounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = mounter(*TWO)
    mounted.remote(("/a.md", "theirs\n"), ("/b.md", None))
    texts = mounted.database.mounts.texts

    def late(*arguments: Any) -> Any:
        mounted.write("/a.md", "at the last moment\n")
        return texts(*arguments)

    monkeypatch.setattr(mounted.database.mounts, "texts", late)
    report = mounted.sync()
    monkeypatch.undo()
    assert [one.reason for one in report.conflicts] == ["was written while the store's version was brought in"]
    assert mounted.put_aside() == {"/a.md": b"at the last moment\n"}
    assert mounted.on_disk() == mounted.in_store() == {"/a.md": b"theirs\n"}
    assert mounted.sync().ok


def test_a_text_written_late_into_a_file_that_was_replaced_is_kept(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    with (mounted.files / "a.md").open("ab") as held:
        mounted.remote(("/a.md", "theirs\n"))
        mounted.sync()
        held.write(b"into the void\n")
    report = mounted.sync()
    assert [one.path for one in report.conflicts] == ["/a.md"]
    assert mounted.put_aside() == {"/a.md": b"alpha\ninto the void\n"}
    assert mounted.on_disk()["/a.md"] == b"theirs\n"


@pytest.mark.parametrize("process", ["the same", "another"])
def test_a_memory_whose_name_no_file_can_have_is_told_once_and_kept(mounter: Mounter, process: str) -> None:
    long = "/" + "é" * 200
    mounted = mounter(*TWO, (long, "text\n"))
    assert mounted.on_disk() == {path: text.encode() for path, text in TWO}
    if process == "another":
        mounted.reopen()
    report = mounted.sync()
    assert len(report.notes) == (process == "another")
    assert long in mounted.in_store()
    assert report.ok


def test_a_folder_that_nobody_can_read_deletes_nothing(mounter: Mounter) -> None:
    mounted = mounter(*TWO, ("/c/d.md", "delta\n"))
    shutil.rmtree(mounted.files / "c")
    (mounted.files / "c").symlink_to("/etc")
    report = mounted.sync()
    assert not saved(report)
    assert [one.path for one in report.refused] == ["/c"]
    assert "/c/d.md" in mounted.in_store()
    mounted.remote(("/c/d.md", "theirs\n"))
    mounted.sync()
    assert mounted.on_disk()["/c/d.md"] == b"theirs\n"
    assert not (mounted.files / "c").is_symlink()


def test_another_folder_in_the_mounts_place_is_trouble(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.files.rename(mounted.home / "moved")
    mounted.files.mkdir()
    report = mounted.mount.sync()
    assert isinstance(report.trouble, SyncError)
    assert len(mounted.versions()) == 2
    assert len(mounted.in_store()) == 2


def test_an_unchanged_mount_costs_one_small_query(mounter: Mounter, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted = mounter(*TWO)
    statements: list[bytes] = []
    run = StoreConnection.run

    def counted(connection: StoreConnection, statement: Statement, *values: Parameter) -> Any:
        statements.append(statement.name)
        return run(connection, statement, *values)

    monkeypatch.setattr(StoreConnection, "run", counted)
    mounted.sync()
    mounted.sync(final=True, deep=True)
    assert statements == [b"mount_pulse"] * 2


def test_files_of_a_mount_are_the_sandboxs(mounter: Mounter) -> None:
    owner = (os.getuid() + 1234, os.getgid() + 1234) if os.getuid() == 0 else (os.getuid(), os.getgid())
    mounted = mounter(*TWO, ("/c/d.md", "delta\n"), owner=owner)
    for place in ("a.md", "c", "c/d.md"):
        status = (mounted.files / place).stat()
        assert (status.st_uid, status.st_gid) == owner
        assert status.st_mode & 0o777 == (0o755 if place == "c" else 0o644)


# -- files that cannot be opened for a moment ----------------------------------------------------------

_HOLD = """
import fcntl, os, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
time.sleep(60)
"""


@contextmanager
def nobody_else_can_open(file: Path) -> Generator[None]:
    """Who asks for the file is told to try again: so it is, too, where there are too many open files."""
    with subprocess.Popen([sys.executable, "-c", _HOLD, str(file)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        try:
            yield
        finally:
            holder.kill()


def test_a_text_that_cannot_be_opened_for_a_moment_waits_until_it_can(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.write("/a.md", "mine\n")
    mounted.remote(("/a.md", "theirs\n"))
    with nobody_else_can_open(mounted.files / "a.md"):
        assert mounted.mount.sync().trouble is not None
        assert mounted.put_aside() == {}
    mounted.sync()
    assert mounted.put_aside() == {"/a.md": b"mine\n"}
    assert mounted.on_disk() == mounted.in_store() == {"/a.md": b"theirs\n", "/b.md": b"beta\n"}
