"""Sandboxes on engines of other kinds, and on one that dies mid-cell; each engine is the test's own."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memkernel.errors import EngineError
from memkernel.sandbox import walls
from memkernel.sandbox.base import Mount, SandboxSpec
from memkernel.sandbox.docker import DockerSandbox
from memkernel.sandbox.engine import Engine, EngineInfo
from memkernel.sandbox.sweep import sweep
from tests.docker_daemon import APART, INSTALLATION, ROOTLESS_UID, Daemon, copy_image

pytestmark = pytest.mark.as_root


@pytest.fixture
def store() -> Iterator[Path]:
    """A store's folder, where every account can come to; the test gives it its owner."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o711)
        folder = Path(os.path.realpath(place)) / "store"
        folder.mkdir(mode=0o700)
        yield folder


def running(daemon: Daemon) -> Iterator[Daemon]:
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.remove()


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """An engine of the usual kind, beside the one that runs."""
    yield from running(Daemon(flags=APART))


@pytest.fixture
def rootless_daemon() -> Iterator[Daemon]:
    """The engine of an account that is not root."""
    yield from running(Daemon(flags=(*APART, "--bridge=none"), rootless=True))


def test_an_engine_that_dies_mid_cell_ends_the_cell_and_keeps_what_was_written(
    docker_engine: Engine, sandbox_image: str, daemon: Daemon, store: Path
) -> None:
    os.chown(store, 1000, 1000)
    with contextlib.closing(daemon.engine()) as engine:
        copy_image(sandbox_image, docker_engine, engine)
        mount = Mount(store, "/mnt/memory/notes")
        box = DockerSandbox(SandboxSpec("sesn_lost", INSTALLATION, mounts=(mount,), image=sandbox_image), engine)
        box.start()
        failed: list[BaseException] = []

        def cell() -> None:
            try:
                box.run("open('/mnt/memory/notes/kept', 'w').write('kept'); import time; time.sleep(600)")
            except EngineError as error:
                failed.append(error)

        thread = threading.Thread(target=cell)
        thread.start()
        deadline = time.monotonic() + 20
        while not (store / "kept").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        daemon.kill()
        thread.join(10)
        assert not thread.is_alive()
        assert [str(error) for error in failed] == ["the Docker engine went away: it hung up"]
        with pytest.raises(EngineError):
            box.run("1")
        assert (store / "kept").read_text() == "kept"
        daemon.start()
        assert sweep(engine, INSTALLATION, lambda session: False) == ["sesn_lost"]
        assert engine.labelled(f"{walls.LABEL_INSTALLATION}={INSTALLATION}") == []
        box.stop()


@pytest.mark.rootless
def test_on_a_rootless_engine_files_are_the_accounts_own_and_missing_limits_are_said(
    docker_engine: Engine, sandbox_image: str, rootless_daemon: Daemon, store: Path
) -> None:
    os.chown(store, ROOTLESS_UID, ROOTLESS_UID)
    shared = store.parent / "shared"
    shared.mkdir()
    os.chown(shared, ROOTLESS_UID, ROOTLESS_UID)
    mounts = (Mount(store, "/mnt/memory/notes"), Mount(shared, "/mnt/memory/shared", read_only=True))
    with contextlib.closing(rootless_daemon.engine()) as engine:
        assert engine.info.kind == "rootless"
        copy_image(sandbox_image, docker_engine, engine)
        box = DockerSandbox(SandboxSpec("sesn_rootless", INSTALLATION, mounts=mounts, image=sandbox_image), engine)
        box.check()
        assert box.owner[0] == ROOTLESS_UID
        box.start()
        try:
            code = "import os; open('/mnt/memory/notes/a', 'w').write('a'); print(os.getuid())"
            assert box.run(code).stdout == "0\n"
            assert (store / "a").stat().st_uid == ROOTLESS_UID
            refused = box.run("open('/mnt/memory/shared/a', 'w')").error
            assert refused is not None
            assert "Read-only file system" in refused.evalue
            assert box.run("import time; time.sleep(60)", timeout_s=1).status == "timeout"
            with box.frozen():
                pass
            assert box.bash("echo on").stdout == "on\n"
            for limit in engine.info.unlimited:
                assert limit in box.isolation.partition("does not limit")[2]
        finally:
            box.stop()


def test_only_what_is_enforced_is_said_to_be_limited(docker_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    box = DockerSandbox(SandboxSpec("sesn_said", INSTALLATION), docker_engine)

    def said(info: EngineInfo) -> str:
        monkeypatch.setattr(docker_engine, "_info", info)
        return box.isolation

    everything = EngineInfo("rootful", "27", cpus=8)
    assert said(everything) == "Docker container: no network, 512 MiB of memory, 2 CPUs, 256 processes"
    nothing = EngineInfo("rootless", "27", cpus=1, unlimited=("memory", "CPU time", "processes"), seccomp=False)
    assert said(nothing) == (
        "Docker container: no network; this engine does not limit memory, CPU time, processes; "
        "this engine does not filter system calls"
    )
