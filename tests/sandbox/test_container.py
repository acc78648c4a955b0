"""A container as a Place: its start, its channel, and every way in which it ends."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from memkernel.errors import EngineError, MemkernelError, MountError, SandboxClosedError, SandboxError
from memkernel.sandbox import probe, walls
from memkernel.sandbox.base import MEBIBYTE, Mount, SandboxLimits, SandboxSpec
from memkernel.sandbox.channel import ExecChannel
from memkernel.sandbox.container import ContainerPlace
from memkernel.sandbox.engine import Engine
from tests.docker_daemon import INSTALLATION

SLEEP = ["python3", "-c", "import time; print('ready', flush=True); time.sleep(600)"]
ECHO = [
    "python3",
    "-c",
    "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line.upper()); sys.stdout.flush()",
]
CONNECTION = {"ip": "/tmp/k", "key": b"key"}

MakePlace = Callable[..., ContainerPlace]
_numbers = itertools.count(os.getpid() * 1000)


@pytest.fixture
def make_place(docker_engine: Engine, sandbox_image: str) -> Iterator[MakePlace]:
    """Makes places with a main command that sleeps and a helper that shouts; all are removed at the end."""
    made: list[ContainerPlace] = []

    def make(
        *mounts: Mount,
        main: Sequence[str] = SLEEP,
        helper: Sequence[str] = ECHO,
        image: str = sandbox_image,
        **limits: Any,
    ) -> ContainerPlace:
        session = f"sesn_container{next(_numbers)}"
        spec = SandboxSpec(session, INSTALLATION, mounts=mounts, limits=SandboxLimits(**limits))
        who = walls.identity(docker_engine.info, (os.getuid(), os.getgid()), docker_engine.owner)
        made.append(ContainerPlace(docker_engine, spec, image, who, main=main, helper=lambda prefix: helper))
        return made[-1]

    yield make
    for place in made:
        place.remove()


@pytest.fixture
def store(tmp_path: Path, docker_engine: Engine) -> Path:
    """A store's folder, of the account that the sandbox is."""
    folder = Path(os.path.realpath(tmp_path)) / "store"
    folder.mkdir(mode=0o700)
    if os.getuid() == 0:
        os.chown(folder, *walls.identity(docker_engine.info, (0, 0)).outside)
    return folder


def ask(channel: ExecChannel, text: str) -> str:
    channel.write(text.encode() + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        part = channel.read()
        assert part, channel.stderr_tail
        answer += part
    return answer.decode().strip()


def run(place: ContainerPlace, code: str) -> str:
    """What Python code says in the place."""
    channel = place.execute(["python3", "-c", f"input()\n{code}"])
    try:
        channel.write(b"\n")
        return channel.read_all(1 << 20).decode().strip()
    finally:
        channel.close()


def containers_of(engine: Engine, place: ContainerPlace) -> list[str]:
    session = place._spec.session_id  # pyright: ignore[reportPrivateUsage]  # the label that its container has
    return [container for container, _ in engine.labelled(f"{walls.LABEL_SESSION}={session}")]


# -- start and channel ---------------------------------------------------------------------------------


def test_the_helper_speaks_over_its_channel(make_place: MakePlace) -> None:
    channel = make_place().launch(CONNECTION)
    assert [ask(channel, text) for text in ("hello", "again")] == ["HELLO", "AGAIN"]


def test_megabytes_go_through_both_ways_unchanged(make_place: MakePlace) -> None:
    channel = make_place(helper=["cat"]).launch(CONNECTION)
    sent = os.urandom(8 * MEBIBYTE)
    writer = threading.Thread(target=lambda: (channel.write(sent), channel.finish_writing()))
    writer.start()
    assert channel.read_all(len(sent) + 1) == sent
    writer.join()


def test_many_threads_write_whole_pieces(make_place: MakePlace) -> None:
    channel = make_place().launch(CONNECTION)
    lines = [f"{number}" * 5000 for number in range(8)]
    threads = [threading.Thread(target=channel.write, args=(line.encode() + b"\n",)) for line in lines]
    for thread in threads:
        thread.start()
    expected = sum(len(line) + 1 for line in lines)
    received = b""
    while len(received) < expected:
        received += channel.read()
    assert sorted(received.decode().split()) == sorted(lines)
    for thread in threads:
        thread.join()


def test_what_the_helper_complains_is_kept_apart(make_place: MakePlace) -> None:
    complaint = "import sys; input(); sys.stderr.write('x' * 9000 + 'the end'); sys.stderr.flush(); print('said')"
    channel = make_place(helper=["python3", "-c", complaint]).launch(CONNECTION)
    assert ask(channel, "") == "said"
    assert channel.read() == b""
    assert channel.stderr_tail.endswith("the end")
    assert len(channel.stderr_tail) <= 4096


def test_a_closed_channel_reads_nothing_and_refuses_writing(make_place: MakePlace) -> None:
    channel = make_place().launch(CONNECTION)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(channel.read()))
    reader.start()
    time.sleep(0.1)
    channel.close()
    channel.close()
    reader.join(5)
    assert read == [b""]
    with pytest.raises(OSError, match="closed"):
        channel.write(b"x")


def test_closing_the_channel_ends_the_helpers_stdin(make_place: MakePlace) -> None:
    """The lease: this is also what happens when the host is killed."""
    place = make_place(helper=["python3", "-c", "import sys; sys.stdin.read(); open('/tmp/ended', 'w')"])
    place.launch(CONNECTION).close()
    deadline = time.monotonic() + 10
    while run(place, "import os; print(os.path.exists('/tmp/ended'))") != "True":
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_main_process_finds_the_connection_info(make_place: MakePlace) -> None:
    place = make_place(
        main=["python3", "-c", "import os, time; print(os.environ['MEMKERNEL_CONNECTION'], flush=True); time.sleep(60)"]
    )
    place.launch(CONNECTION)
    deadline = time.monotonic() + 10
    while '{"ip": "/tmp/k", "key": "key"}' not in place.logs():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_two_containers_of_one_session_do_not_stand_in_each_others_way(make_place: MakePlace) -> None:
    """Fault 41: after a crash the old one may still be there."""
    one, other = make_place(), make_place()
    other._spec = one._spec  # pyright: ignore[reportPrivateUsage]  # the same session opened twice
    assert ask(one.launch(CONNECTION), "one") == "ONE"
    assert ask(other.launch(CONNECTION), "other") == "OTHER"


def test_a_name_that_is_taken_is_passed_over_and_its_container_left_alone(
    docker_engine: Engine, sandbox_image: str, make_place: MakePlace
) -> None:
    taken = f"memkernel-taken-{next(_numbers)}"
    config = {"Image": sandbox_image, "Entrypoint": ["true"], "Labels": {walls.LABEL_INSTALLATION: INSTALLATION}}
    first = docker_engine.create(config, iter([taken]))
    second = docker_engine.create(config, iter([taken, f"{taken}-b"]))
    try:
        assert docker_engine.inspect(first)["Name"] == f"/{taken}"
        assert docker_engine.inspect(second)["Name"] == f"/{taken}-b"
    finally:
        docker_engine.remove(first)
        docker_engine.remove(second)


# -- ends ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "exit_code", "said"),
    [
        ("raise SystemExit(0)", 0, "it ended"),
        ("raise SystemExit(3)", 3, "it ended with exit code 3"),
        ("import os; os.abort()", 134, "it aborted (SIGABRT)"),
        ("import os; os.kill(os.getpid(), 9)", 137, "it was killed (SIGKILL)"),
        ("import ctypes; ctypes.string_at(0)", 139, "it crashed (SIGSEGV)"),
    ],
)
def test_how_the_main_process_ended_is_known_in_under_a_second(
    make_place: MakePlace, code: str, exit_code: int, said: str
) -> None:
    main = f"import os, time\nwhile not os.path.exists('/tmp/end'): time.sleep(0.01)\n{code}"
    place = make_place(main=["python3", "-c", main])
    place.launch(CONNECTION)
    run(place, "open('/tmp/end', 'w')")
    began = time.monotonic()
    found = place.wait()
    assert time.monotonic() - began < 1
    assert (found.exit_code, found.detail) == (exit_code, said)
    assert (found.out_of_memory, found.removed, found.engine_lost) == (False, False, False)
    assert place.wait() == found


def test_a_main_process_that_takes_too_much_memory_is_out_of_memory(make_place: MakePlace) -> None:
    main = "import os, time\nwhile not os.path.exists('/tmp/end'): time.sleep(0.01)\nbytearray(200 << 20)"
    place = make_place(main=["python3", "-c", main], memory_bytes=64 * MEBIBYTE)
    place.launch(CONNECTION)
    run(place, "open('/tmp/end', 'w')")
    assert place.wait().out_of_memory
    assert place.memory_limit_was_hit()


def test_a_child_that_takes_too_much_memory_is_seen_while_the_main_process_lives(make_place: MakePlace) -> None:
    place = make_place(memory_bytes=64 * MEBIBYTE)
    place.launch(CONNECTION)
    assert not place.memory_limit_was_hit()
    code = "import subprocess, sys; print(subprocess.run([sys.executable, '-c', 'bytearray(200 << 20)']).returncode)"
    assert run(place, code) == "-9"
    deadline = time.monotonic() + 3
    while not place.memory_limit_was_hit():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert run(place, "print('alive')") == "alive"


def test_a_container_that_somebody_removes_is_removed(docker_engine: Engine, make_place: MakePlace) -> None:
    place = make_place()
    channel = place.launch(CONNECTION)
    assert place.container_id
    docker_engine.remove(place.container_id)
    found = place.wait()
    assert found.removed
    assert not found.engine_lost
    assert channel.read() == b""
    assert place.logs() == ""
    assert not place.memory_limit_was_hit()
    with pytest.raises(SandboxClosedError):
        place.execute(["true"])
    place.end()
    place.remove()


def test_an_ended_place_can_be_launched_again_with_nothing_of_before(
    docker_engine: Engine, make_place: MakePlace
) -> None:
    place = make_place()
    place.launch(CONNECTION)
    run(place, "open('/tmp/left', 'w')")
    place.end()
    assert place.wait().exit_code == 137
    assert "ready" in place.logs()
    channel = place.launch(CONNECTION)
    assert ask(channel, "again") == "AGAIN"
    assert run(place, "import os; print(os.listdir('/tmp'))") == "[]"
    assert len(containers_of(docker_engine, place)) == 1


def test_removing_leaves_nothing_and_can_be_repeated(docker_engine: Engine, make_place: MakePlace) -> None:
    place = make_place()
    place.launch(CONNECTION)
    place.remove()
    place.remove()
    place.end()
    assert containers_of(docker_engine, place) == []
    assert place.logs() == ""
    with pytest.raises(SandboxClosedError):
        place.execute(["true"])


def test_waiting_for_what_never_started_ends_at_once(make_place: MakePlace) -> None:
    assert make_place().wait().detail == "it was never started"


def test_what_is_frozen_does_not_run_and_runs_on_afterwards(make_place: MakePlace) -> None:
    place = make_place(
        main=["python3", "-c", "import time\nwhile True: print(time.monotonic(), flush=True); time.sleep(0.01)"]
    )
    channel = place.launch(CONNECTION)
    with place.frozen():
        before = place.logs()
        time.sleep(0.3)
        assert place.logs() == before
        with pytest.raises(EngineError, match="the sandbox is paused"):
            place.execute(["true"])
    assert ask(channel, "on") == "ON"


def test_freezing_and_starting_commands_do_not_lock_each_other_up(make_place: MakePlace) -> None:
    """Docker 20.10 never gives back a container that is paused while a command starts in it."""
    place = make_place()
    channel = place.launch(CONNECTION)
    said: list[str] = []
    threads = [threading.Thread(target=lambda: said.append(run(place, "print(1)"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        with place.frozen():
            pass
    for thread in threads:
        thread.join(30)
    assert said == ["1"] * 4
    assert ask(channel, "on") == "ON"


def test_a_frozen_place_can_be_ended(make_place: MakePlace) -> None:
    place = make_place()
    place.launch(CONNECTION)
    with place.frozen():
        place.end()
        assert place.wait().exit_code == 137


def test_freezing_what_does_not_run_does_nothing(make_place: MakePlace) -> None:
    place = make_place()
    with place.frozen():
        pass
    place.launch(CONNECTION)
    place.end()
    place.wait()
    with place.frozen():
        pass


# -- starts that fail leave nothing behind ------------------------------------------------------------------


def failing(engine: Engine, place: ContainerPlace, kind: type[MemkernelError], said: str) -> None:
    with pytest.raises(kind, match=said):
        place.launch(CONNECTION)
    assert containers_of(engine, place) == []
    assert place.container_id is None


def test_a_main_command_that_is_not_there(docker_engine: Engine, make_place: MakePlace) -> None:
    failing(docker_engine, make_place(main=["/no/python"]), SandboxError, "ended at once: .*exec /no/python failed")


def test_a_main_process_that_ends_at_once_says_why(docker_engine: Engine, make_place: MakePlace, store: Path) -> None:
    main = ["python3", "-c", "raise SystemExit('no kernel here')"]
    place = make_place(Mount(store, "/mnt/memory/notes"), main=main, helper=["sleep", "60"])
    try:
        place.launch(CONNECTION)
    except SandboxError:
        assert containers_of(docker_engine, place) == []
    else:  # it lived until the helper was there: then its end is what `wait` tells
        assert place.wait().exit_code == 1
        assert "no kernel here" in place.logs()


def test_an_image_that_is_gone(docker_engine: Engine, make_place: MakePlace) -> None:
    failing(docker_engine, make_place(image="sha256:" + "a" * 64), SandboxError, "it is not there")


def test_a_source_that_went_since_it_was_checked(docker_engine: Engine, make_place: MakePlace, store: Path) -> None:
    place = make_place(Mount(store / "gone", "/mnt/memory/notes"))
    failing(docker_engine, place, MountError, "does not find it")


# -- the probe ----------------------------------------------------------------------------------------------


def test_the_probe_leaves_nothing_in_the_mounts(make_place: MakePlace, store: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    place = make_place(Mount(store, "/mnt/memory/notes"), Mount(shared, "/mnt/memory/shared", read_only=True))
    place.launch(CONNECTION)
    assert [*store.iterdir(), *shared.iterdir()] == []


def lying(place: ContainerPlace, instead: Sequence[Mount]) -> ContainerPlace:
    """The place, mounting something else than it says: what an engine elsewhere or a file share does."""
    told = place._spec  # pyright: ignore[reportPrivateUsage]  # there is no other way to lie to it
    body = walls.container

    def container(spec: SandboxSpec, **arguments: Any) -> dict[str, Any]:
        made = body(spec, **arguments)
        made["HostConfig"]["Mounts"] = [walls.bind(mount) for mount in instead]
        return made

    assert told.mounts
    setattr(walls, "container", container)  # noqa: B010  # undone by the fixture below
    return place


@pytest.fixture
def honest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the true `walls.container` back."""
    monkeypatch.setattr(walls, "container", walls.container)


@pytest.mark.usefixtures("honest")
def test_another_folder_in_the_mounts_place_is_seen(
    docker_engine: Engine, make_place: MakePlace, store: Path, tmp_path: Path
) -> None:
    """Fault 39: an engine on another machine makes an empty folder, which must not read as "all deleted"."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = lying(make_place(Mount(store, "/mnt/memory/notes")), [Mount(elsewhere, "/mnt/memory/notes")])
    failing(docker_engine, place, MountError, "the sandbox sees another folder in its place")
    assert list(store.iterdir()) == []


@pytest.mark.usefixtures("honest")
def test_a_read_only_mount_that_is_writable_is_seen(docker_engine: Engine, make_place: MakePlace, store: Path) -> None:
    place = lying(make_place(Mount(store, "/mnt/memory/n", read_only=True)), [Mount(store, "/mnt/memory/n")])
    failing(docker_engine, place, MountError, "it should be read-only")
    assert list(store.iterdir()) == []


@pytest.mark.usefixtures("honest")
def test_a_writable_mount_that_is_read_only_is_seen(docker_engine: Engine, make_place: MakePlace, store: Path) -> None:
    place = lying(make_place(Mount(store, "/mnt/memory/n")), [Mount(store, "/mnt/memory/n", read_only=True)])
    failing(docker_engine, place, MountError, r"cannot write to it \(EROFS\)")


@pytest.mark.as_root
def test_a_folder_of_another_account_is_seen(docker_engine: Engine, make_place: MakePlace, store: Path) -> None:
    os.chown(store, 4321, 4321)
    place = make_place(Mount(store, "/mnt/memory/notes"))
    failing(docker_engine, place, MountError, r"the sandbox cannot read it \(EACCES\)")


@pytest.mark.usefixtures("honest")
def test_a_persons_folder_that_arrives_empty_is_seen(
    docker_engine: Engine, make_place: MakePlace, store: Path, tmp_path: Path
) -> None:
    (store / "data.csv").touch()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    mount = Mount(store, "/data", read_only=True, memory=False)
    place = lying(make_place(mount), [Mount(elsewhere, "/data", read_only=True, memory=False)])
    failing(docker_engine, place, MountError, "the sandbox sees another folder in its place")


def test_a_persons_folder_gets_no_file_of_ours_even_for_a_moment(make_place: MakePlace, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    before = folder.stat().st_mtime_ns
    place = make_place(Mount(folder, "/data", read_only=True, memory=False))
    place.launch(CONNECTION)
    assert folder.stat().st_mtime_ns == before


def test_a_link_with_the_probes_name_is_not_followed(
    make_place: MakePlace, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = store.parent / "victim"
    victim.write_text("mine")

    def guessed(size: int) -> str:
        return "f" * 2 * size

    monkeypatch.setattr(probe.secrets, "token_hex", guessed)
    (store / f"{probe.PREFIX}{'f' * 16}").symlink_to(victim)
    with pytest.raises(MountError, match="cannot be written to"):
        make_place(Mount(store, "/mnt/memory/notes")).launch(CONNECTION)
    assert victim.read_text() == "mine"


# -- nothing outlives the host ---------------------------------------------------------------------------------


HOST = """
import os, sys, time
from memkernel import config
from memkernel.sandbox.base import SandboxSpec
from memkernel.sandbox.docker import DockerSandbox
from memkernel.sandbox.engine import find_engine
box = DockerSandbox(SandboxSpec(sys.argv[1], sys.argv[2], image=sys.argv[3]), find_engine(config.load()))
box.start()
print("started", flush=True)
box.run("import time; time.sleep(600)")
"""


def test_a_host_that_is_killed_mid_cell_leaves_no_running_container(docker_engine: Engine, sandbox_image: str) -> None:
    session = f"sesn_killed{next(_numbers)}"
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, session, INSTALLATION, sandbox_image], stdout=subprocess.PIPE, text=True
    )
    assert host.stdout
    try:
        assert host.stdout.readline() == "started\n"
        time.sleep(0.2)
        ((container, _),) = docker_engine.labelled(f"{walls.LABEL_SESSION}={session}")
        assert docker_engine.state(container)["Running"]
        host.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 3
        while docker_engine.state(container)["Running"]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        host.kill()
        host.wait()
        host.stdout.close()
        for container, _ in docker_engine.labelled(f"{walls.LABEL_SESSION}={session}"):
            docker_engine.remove(container)


def test_no_socket_is_left_open(make_place: MakePlace) -> None:
    """Each launch takes connections of the engine's; all go back with the container."""

    def sockets() -> int:
        links = [Path(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
        return sum(1 for link in links if os.path.islink(link) and os.readlink(link).startswith("socket:"))

    place = make_place()
    place.launch(CONNECTION)
    place.remove()
    before = sockets()
    for _ in range(3):
        place.launch(CONNECTION)
        place.remove()
    assert sockets() <= before


def test_a_channel_that_a_child_forgets_stays_open_in_the_parent(make_place: MakePlace) -> None:
    channel = make_place().launch(CONNECTION)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = os.fork()
        if process == 0:
            channel.forget()
            theirs.send(b"x")
            os._exit(0)
        ours.recv(1)
        os.waitpid(process, 0)
    assert ask(channel, "still") == "STILL"
