"""What bad input gets: refused before anything starts, with the way out, and nothing is left behind."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memkernel as mk
from memkernel import errors
from memkernel.sandbox.engine import Engine
from tests.fix_sandbox import MakeBox

pytestmark = pytest.mark.usefixtures("sandbox_image", "docker_engine")


@pytest.fixture(autouse=True)
def _nothing_is_left(docker_engine: Engine, sandbox_connection: mk.Connection, sandbox_home: Path) -> Iterator[None]:
    """After each of these tests: no session, no folder, no container."""
    yield
    assert sandbox_connection.database.sessions.list(limit=100).data == []
    sessions = sandbox_home / "sessions"
    assert not sessions.exists() or list(sessions.iterdir()) == []
    installation = sandbox_home / "installation"
    if installation.exists():
        assert docker_engine.labelled(f"org.memkernel.installation={installation.read_text().strip()}") == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see no_engine
def test_no_engine_is_told_in_under_a_second_with_the_way_out(
    *, dsn: str, notes: mk.Store, boxes: MakeBox, no_engine: Path
) -> None:
    with mk.connect(dsn) as connection:
        begun = time.monotonic()
        with pytest.raises(errors.EngineNotFoundError) as caught:
            boxes(connection.store(notes.id))
        assert time.monotonic() - begun < 1
    assert "--backend local" in caught.value.hint
    assert str(no_engine) in str(caught.value)


def test_an_unknown_image_is_told_by_its_name(notes: mk.Store, boxes: MakeBox) -> None:
    with pytest.raises(errors.ImageError, match="memkernel-no-such-image"):
        boxes(notes, image="memkernel-no-such-image:1")


def test_a_missing_store(sandbox_connection: mk.Connection, notes: mk.Store, boxes: MakeBox) -> None:
    gone = sandbox_connection.create_store("Gone")
    gone.drop()
    with pytest.raises(errors.InvalidInputError, match=gone.id):
        boxes(notes, gone)


def test_an_archived_store(sandbox_connection: mk.Connection, notes: mk.Store, boxes: MakeBox) -> None:
    old = sandbox_connection.create_store("Old")
    old.archive()
    with pytest.raises(errors.StoreArchivedError, match="memory store Old is archived") as caught:
        boxes(notes, old)
    assert "`%sandbox start --store OTHER`" in caught.value.hint


def test_nine_stores(sandbox_connection: mk.Connection) -> None:
    stores = [sandbox_connection.create_store(f"Store {number}") for number in range(9)]
    with pytest.raises(errors.InvalidInputError, match="9 stores are too many"):
        mk.Sandbox(*stores)


def test_eight_stores_are_mounted(sandbox_connection: mk.Connection) -> None:
    stores = [sandbox_connection.create_store(f"Store {number}") for number in range(8)]
    with mk.Sandbox(*stores[:4], *(mk.read_only(store) for store in stores[4:])) as box:
        result = box.bash("for n in $(seq 0 7); do echo $n > /mnt/memory/store-$n/a.md; done; ls /mnt/memory | wc -l")
        assert result.stdout == "8\n"
        assert result.stderr.count("Read-only file system") == 4
    assert [len(store.ls()) for store in stores] == [1] * 4 + [0] * 4
    sandbox_connection.database.sessions.delete(box.id)


def test_two_stores_with_one_slug(sandbox_connection: mk.Connection, boxes: MakeBox) -> None:
    with pytest.raises(errors.InvalidInputError, match=r"^'My Notes' and 'my-notes' would both be mounted at /mnt"):
        boxes(sandbox_connection.create_store("My Notes"), sandbox_connection.create_store("my-notes"))


def test_one_store_twice(notes: mk.Store, boxes: MakeBox) -> None:
    for again in (notes, mk.read_only(notes), mk.read_only(notes.connection.store("team-notes"))):
        with pytest.raises(errors.InvalidInputError, match=r"^'Team notes' is mounted twice$") as caught:
            boxes(notes, again)
        assert caught.value.hint


def test_no_store_and_no_stores(notes: mk.Store) -> None:
    with pytest.raises(errors.InvalidInputError, match="needs a memory store"):
        mk.Sandbox()
    with pytest.raises(errors.InvalidInputError, match="'team-notes' is no memory store"):
        mk.Sandbox("team-notes")  # pyright: ignore[reportArgumentType]  # what a person may well type


def test_stores_of_two_connections(dsn: str, notes: mk.Store) -> None:
    with mk.connect(dsn) as other, pytest.raises(errors.InvalidInputError, match="one connection"):
        mk.Sandbox(notes, other.create_store("Other"))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("memory", "lots"),
        ("memory", "-1m"),
        ("memory", "1m"),
        ("memory", None),
        ("cpus", 0),
        ("cpus", float("nan")),
        ("cpus", "two"),
        ("cpus", True),
        ("pids", 3),
        ("pids", 2.5),
        ("timeout_s", 0),
        ("timeout_s", -1),
        ("timeout_s", "soon"),
        ("timeout_s", float("inf")),
        ("network", "host"),
        ("network", "container:other"),
        ("network", ""),
        ("network", "a b"),
        ("on_conflict", "theirs"),
        ("on_conflict", None),
        ("backend", "podman"),
        ("level", 1),
        ("packages", ["--index-url=http://x"]),
        ("packages", "pandas"),
        ("packages", [3]),
        ("environment", {"A=B": "c"}),
        ("environment", {"A": 1}),
        ("environment", {"A": "\0"}),
        ("files", {"data": "."}),
        ("files", {"/mnt/memory/team-notes/x": "."}),
        ("files", {"/etc": "."}),
        ("files", {"/data": "~/no/such/file"}),
        ("files", {"/data": 5}),
        ("files", {5: "."}),
        ("files", ["/data"]),
        ("environment", ["A"]),
        ("packages", 5),
        ("files", {"/data": "/"}),
        ("files", {"/data": "/var/run/docker.sock"}),
        ("network", None),
        ("image", 3),
        ("name", 3),
        ("name", "a\nb"),
        ("name", "x" * 300),
    ],
)
def test_a_value_that_is_none_is_refused_by_its_name(notes: mk.Store, boxes: MakeBox, option: str, value: Any) -> None:
    with pytest.raises((errors.InvalidInputError, errors.MountError)) as caught:
        boxes(notes, **{option: value})
    assert str(caught.value)


@pytest.mark.parametrize("option", [{"image": "x"}, {"packages": ["pandas"]}, {"network": "bridge"}])
def test_what_a_local_sandbox_cannot_have(notes: mk.Store, option: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInputError, match="a local sandbox has no image"):
        mk.Sandbox(notes, backend="local", **option)


def test_a_network_that_is_not_there(notes: mk.Store, boxes: MakeBox) -> None:
    with pytest.raises(errors.InvalidInputError, match="no Docker network nowhere"):
        boxes(notes, network="nowhere")


@pytest.mark.as_root
def test_a_store_that_cannot_be_filled_stops_the_start(
    *, dsn: str, notes: mk.Store, boxes: MakeBox, sandbox_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 33: the reason is told, and no half session remains."""
    notes.write("/a.md", "x" * 100_000)
    disk = sandbox_home.parent / "small"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "memkernel-tests", str(disk)], check=True)
    try:
        monkeypatch.setenv("MEMKERNEL_HOME", str(disk / "home"))
        with mk.connect(dsn) as connection, pytest.raises(errors.SyncError, match="cannot be filled"):
            boxes(connection.store(notes.id), backend="local")
        assert list((disk / "home" / "sessions").iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("value", [0, "x", True])
def test_a_cells_own_values_are_checked_before_it_runs(notes: mk.Store, value: Any) -> None:
    box = mk.Sandbox(notes, backend="local")
    with box:
        with pytest.raises(errors.InvalidInputError):
            box.run("open('/mnt/memory/team-notes/a', 'w')", timeout_s=value)
        with pytest.raises(errors.InvalidInputError):
            box.run("open('/mnt/memory/team-notes/a', 'w')", on_conflict=value)
    assert notes.ls() == []
    notes.connection.database.sessions.delete(box.id)
