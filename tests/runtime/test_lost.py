"""The database, the engine or the container is lost in a cell: what lies in the mount is kept, and saved later."""

from __future__ import annotations

import gc
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import memkernel as mk
from memkernel import errors
from memkernel.models import StoreReport, SyncReport
from memkernel.sandbox.engine import Engine
from tests.fix_postgres import PostgresServer
from tests.fix_sandbox import MakeBox
from tests.runtime.engine_proxy import EngineProxy
from tests.runtime.processes import wait_until

MOUNT = "/mnt/memory/team-notes"
BACKENDS = ["docker", "local"]

pytestmark = pytest.mark.usefixtures("sandbox_image", "docker_engine")


def texts(store: mk.Store) -> dict[str, str]:
    return {memory.path: store.read(memory.path) for memory in store.ls("/", depth=0) if isinstance(memory, mk.Memory)}


def of(report: SyncReport | None) -> StoreReport:
    assert report is not None
    (store,) = report.stores
    return store


# -- the database ----------------------------------------------------------------------------------


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that a test may stop."""
    server = PostgresServer(18)
    yield server
    server.remove()


@pytest.fixture
def own_notes(own_server: PostgresServer, sandbox_home: Path) -> Iterator[mk.Store]:
    """A store on it."""
    with mk.connect(own_server.dsn(own_server.create_migrated_database())) as connection:
        yield connection.store("Team notes", create=True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_database_lost_in_a_cell_is_an_error_and_the_next_sync_saves_all(
    backend: str, own_server: PostgresServer, own_notes: mk.Store, boxes: MakeBox
) -> None:
    own_notes.write("/a.md", "old")
    box = boxes(own_notes, backend=backend)
    with pytest.raises(errors.SyncError) as caught:
        box.bash(f"echo ready; sleep 0.5; echo new > {MOUNT}/a.md", on_output=lambda _: own_server.stop())
    error = caught.value
    assert error.result.status == "ok"
    assert error.result.stdout == "ready\n"
    assert isinstance(of(error.report).trouble, errors.DatabaseUnavailableError)
    assert "is kept" in error.hint
    with pytest.raises(errors.SyncError) as caught:
        box.run("1 + 1")
    assert "The code was not run" in caught.value.hint
    assert caught.value.result is None  # it did not run on files that nobody can vouch for
    own_server.start()
    assert [version.path for version in of(box.sync()).modified] == ["/a.md"]
    assert texts(own_notes) == {"/a.md": "new\n"}
    assert box.run("1 + 1").result == "2"


def test_a_database_lost_at_the_end_leaves_the_mount_for_the_next_start(
    own_server: PostgresServer, own_notes: mk.Store, boxes: MakeBox, sandbox_home: Path
) -> None:
    box = boxes(own_notes, backend="local")
    with pytest.raises(errors.SyncError):
        box.bash(f"echo ready; sleep 0.5; echo new > {MOUNT}/a.md", on_output=lambda _: own_server.stop())
    with pytest.raises(errors.SyncError, match="is not synced"):
        box.stop()
    assert not box.is_open
    own_server.start()
    another = boxes(own_notes, backend="local")  # in this very process, and not its first
    assert [(ended.session_id, ended.trouble) for ended in another.recovered] == [(box.id, "")]
    assert texts(own_notes) == {"/a.md": "new\n"}
    assert another.bash(f"cat {MOUNT}/a.md").stdout == "new\n"
    another.stop()
    assert boxes(own_notes, backend="local").recovered == []


def test_a_quiet_sync_gives_a_lost_database_two_seconds_and_says_nothing(
    own_server: PostgresServer, own_notes: mk.Store, boxes: MakeBox
) -> None:
    box = boxes(own_notes, backend="local")
    own_server.stop()
    begun = time.monotonic()
    assert box.sync_quietly() is None
    assert 1.9 < time.monotonic() - begun < 2.5
    own_server.start()
    assert box.run("1 + 1").result == "2"


# -- the engine ------------------------------------------------------------------------------------


@pytest.fixture
def proxy(docker_host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineProxy]:
    """The engine, by a way that can be lost."""
    path = tmp_path / "engine.sock"
    proxy = EngineProxy(path, docker_host)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    yield proxy
    proxy.close()
    gc.collect()


# The SDK leaves the socket of a failed connection to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_engine_lost_in_a_cell_is_an_error_and_what_was_written_is_saved(
    *, proxy: EngineProxy, dsn: str, sandbox_home: Path, boxes: MakeBox, docker_engine: Engine
) -> None:
    with mk.connect(dsn) as connection:
        notes = connection.store("Team notes", create=True)
        box = boxes(notes)
        with pytest.raises(errors.SandboxError) as caught:
            box.bash(f"echo new > {MOUNT}/a.md; echo ready; sleep 60", on_output=lambda _: proxy.lose())
        assert isinstance(caught.value, errors.EngineError)
        assert "starts a new sandbox" in caught.value.hint
        assert (caught.value.result.status, caught.value.result.stdout) == ("died", "ready\n")
        assert caught.value.result.report == box.report
        assert texts(notes) == {"/a.md": "new\n"}
        assert [version.path for version in of(box.report).created] == ["/a.md"]
        assert box.status().state == "closed"
        with pytest.raises(errors.EngineError):
            box.stop()
        label = f"org.memkernel.session={box.id}"
        wait_until(lambda: not any(docker_engine.state(one)["Running"] for one, _ in docker_engine.labelled(label)))
        proxy.come_back()
        another = boxes(notes)  # in this very process
        assert [(ended.session_id, ended.trouble) for ended in another.recovered] == [(box.id, "")]
        assert docker_engine.labelled(label) == []
        assert connection.database.sessions.retrieve(box.id).status == "terminated"
        assert another.bash(f"cat {MOUNT}/a.md").stdout == "new\n"
        another.stop()


def test_a_container_removed_in_a_cell_is_an_error_and_what_was_written_is_saved(
    notes: mk.Store, docker_box: mk.Sandbox, docker_engine: Engine, boxes: MakeBox
) -> None:
    ((container, _),) = docker_engine.labelled(f"org.memkernel.session={docker_box.id}")
    begun = time.monotonic()
    with pytest.raises(errors.SandboxClosedError) as caught:
        docker_box.bash(
            f"echo new > {MOUNT}/a.md; echo ready; sleep 60", on_output=lambda _: docker_engine.remove(container)
        )
    assert time.monotonic() - begun < 10
    assert caught.value.result.stdout == "ready\n"
    assert texts(notes) == {"/a.md": "new\n"}
    with pytest.raises(errors.SandboxClosedError):
        docker_box.run("1 + 1")
    docker_box.stop()
    assert boxes(notes).bash(f"cat {MOUNT}/a.md").stdout == "new\n"


# -- the disk --------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    disk = tmp_path / "small"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "memkernel-tests", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.as_root
def test_a_full_disk_keeps_what_is_there_and_the_next_cell_works_once_there_is_room(
    dsn: str, small_disk: Path, boxes: MakeBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMKERNEL_HOME", str(small_disk / "home"))
    with mk.connect(dsn) as connection:
        notes = connection.store("Team notes", create=True)
        notes.write("/a.md", "a")
        box = boxes(notes, backend="local")
        filled = box.bash(f"cd {MOUNT}; echo good > good.md; head -c 2000000 /dev/zero > large")
        assert filled.status == "error"
        assert "No space left" in filled.stderr
        assert texts(notes) == {"/a.md": "a", "/good.md": "good\n"}
        notes.write("/b.md", "b" * 50_000)
        with pytest.raises(errors.SyncError) as caught:
            box.bash("true")
        assert "no space left" in str(caught.value)
        assert texts(notes).keys() == {"/a.md", "/b.md", "/good.md"}
        (small_disk / "home" / "sessions" / box.id / "mnt/memory/team-notes/large").unlink()
        assert box.bash(f"wc -c < {MOUNT}/b.md").stdout.strip() == "50000"
        box.stop()


def test_a_kernel_that_dies_is_a_result_and_what_it_wrote_is_saved(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    result = docker_box.run(f"open('{MOUNT}/a.md', 'w').write('last words'); import os; os._exit(3)")
    assert result.status == "died"
    assert texts(notes) == {"/a.md": "last words"}
    assert docker_box.run("1 + 1").result == "2"
