"""A server that runs: what kills it, who keeps it, what brings it back."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from memkernel.cluster.supervisor import command_line
from tests.cluster.conftest import KINDS, Kind
from tests.cluster.homes import Home, Kernel, RemoteError, send, wait_until


@pytest.fixture
def fifty_rows(home: Home) -> Kernel:
    """A kernel that has written 50 rows in as many transactions."""
    kernel = home.running_kernel()
    home.rows("DROP TABLE IF EXISTS kept")
    home.rows("CREATE TABLE kept (number int)")
    home.rows("DO $$ BEGIN FOR i IN 1..50 LOOP INSERT INTO kept VALUES (i); COMMIT; END LOOP; END $$")
    return kernel


def rows_kept(home: Home) -> int:
    """How many of them are there."""
    return home.rows("SELECT count(*) FROM kept")[0][0]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A living process that has nothing to do with PostgreSQL."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


# -- the death of a kernel ---------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["kill", "kill_group", "close"])
def test_the_server_stops_cleanly_after_its_only_kernel_has_gone(home: Home, how: str) -> None:
    """Fault 44: nothing depends on atexit."""
    kernel = home.running_kernel()
    getattr(kernel, how)()
    wait_until(lambda: home.is_idle)
    assert not (home.place.data / "postmaster.pid").exists()
    assert home.log.rstrip().endswith("database system is shut down")


def test_the_server_stays_while_another_kernel_lives(home: Home) -> None:
    first, _second = home.running_kernel(), home.running_kernel()
    postmaster = home.postmaster
    first.kill()
    time.sleep(1.0)  # with a linger of 0 it would be gone by now
    assert home.postmaster == postmaster


def test_a_kernel_that_releases_the_server_no_longer_keeps_it(home: Home) -> None:
    kernel = home.running_kernel()
    kernel("cluster.release(); cluster.release()")
    wait_until(lambda: home.is_idle)
    assert kernel("cluster.ensure()") == home.dsn


def test_a_kernel_that_comes_within_the_linger_finds_the_same_server(home: Home) -> None:
    home.linger_s = 600.0
    kernel = home.running_kernel()
    postmaster = home.postmaster
    kernel.kill()
    time.sleep(0.5)
    assert home.running_kernel()("cluster.status().postmaster_pid") == postmaster


def test_children_of_a_kernel_do_not_keep_the_server(home: Home) -> None:
    kernel = home.kernel()
    kernel("cluster.ensure()")
    child = kernel("child = os.fork()\nif child == 0:\n    os.closerange(0, 3)\n    time.sleep(600)\n    os._exit(0)")
    child = kernel("child")
    try:
        kernel.process.kill()
        kernel.process.wait()
        wait_until(lambda: home.is_idle)
        assert command_line(child)
    finally:
        send(signal.SIGKILL, child)


def test_a_forked_child_that_asks_for_the_server_becomes_a_client_itself(home: Home) -> None:
    """Fault 21."""
    kernel = home.running_kernel()
    kernel("reader, writer = os.pipe()")
    kernel(
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.closerange(0, 3)\n"
        "    os.write(writer, cluster.ensure().encode())\n"
        "    time.sleep(600)\n"
        "    os._exit(0)"
    )
    child = kernel("child")
    try:
        assert kernel("os.read(reader, 1000).decode()") == home.dsn
        kernel.process.kill()
        kernel.process.wait()
        time.sleep(1.0)
        assert home.postmaster
    finally:
        send(signal.SIGKILL, child)
    wait_until(lambda: home.is_idle)


# -- the death of the server -------------------------------------------------------------------------


def test_a_killed_postmaster_comes_back_with_every_row(home: Home, fifty_rows: Kernel) -> None:
    postmaster = home.postmaster
    send(signal.SIGKILL, postmaster)
    wait_until(lambda: home.postmaster != postmaster)
    fifty_rows("cluster.ensure()")
    assert rows_kept(home) == 50
    assert home.postmaster != postmaster


def test_a_killed_backend_leaves_the_server_usable(home: Home, fifty_rows: Kernel) -> None:
    before = len(home.log)
    with suppress(RemoteError):  # it kills the very session that asks
        home.rows("COPY (SELECT 1) TO PROGRAM 'kill -9 $PPID'", role="postgres")
    wait_until(lambda: "was terminated by signal 9" in home.log[before:])
    fifty_rows("cluster.ensure()")
    assert rows_kept(home) == 50


def test_a_server_whose_supervisor_was_killed_is_adopted(home: Home) -> None:
    kernel = home.running_kernel()
    postmaster, supervisor = home.postmaster, home.supervisor
    send(signal.SIGKILL, supervisor)
    wait_until(lambda: not command_line(supervisor))
    assert home.postmaster == postmaster

    kernel("cluster.ensure()")
    wait_until(lambda: home.supervisor)
    assert home.postmaster == postmaster
    assert kernel("cluster.status().supervised")
    kernel.kill()
    wait_until(lambda: home.is_idle)
    assert not (home.place.data / "postmaster.pid").exists()


def test_an_adopted_server_is_started_again_after_a_crash(home: Home, fifty_rows: Kernel) -> None:
    send(signal.SIGKILL, home.supervisor)
    wait_until(lambda: not home.supervisor)
    fifty_rows("cluster.ensure()")
    postmaster = home.postmaster
    send(signal.SIGKILL, postmaster)
    fifty_rows("cluster.ensure()")
    assert rows_kept(home) == 50
    assert home.postmaster not in (0, postmaster)


def test_a_supervisor_that_is_told_to_end_stops_the_server_cleanly(home: Home) -> None:
    kernel = home.running_kernel()
    send(signal.SIGTERM, home.supervisor)
    wait_until(lambda: home.is_idle)
    assert not (home.place.data / "postmaster.pid").exists()
    assert home.log.rstrip().endswith("database system is shut down")
    assert kernel("cluster.ensure()") == home.dsn


# -- what a dead server has left ---------------------------------------------------------------------


def test_a_stale_pid_that_another_process_has_now_is_no_server(
    home: Home, fifty_rows: Kernel, sleeper: subprocess.Popen[bytes]
) -> None:
    """As after the restart of a container (fault 58)."""
    home.kill_server()
    put_pid(home, str(sleeper.pid))
    fifty_rows("cluster.ensure()")
    assert rows_kept(home) == 50
    assert sleeper.poll() is None


def test_a_stale_pid_of_a_zombie_is_no_server(home: Home, fifty_rows: Kernel) -> None:
    home.kill_server()
    zombie = subprocess.Popen(["true"])
    wait_until(lambda: not command_line(zombie.pid))
    put_pid(home, str(zombie.pid))
    fifty_rows("cluster.ensure()")
    zombie.wait()
    assert rows_kept(home) == 50


@pytest.mark.parametrize("text", ["", "garbage\n\n", "999999999"])
def test_a_pid_file_that_names_no_process_is_no_server(home: Home, fifty_rows: Kernel, text: str) -> None:
    home.kill_server()
    (home.place.data / "postmaster.pid").write_text(text)
    fifty_rows("cluster.ensure()")
    assert rows_kept(home) == 50


def put_pid(home: Home, pid: str) -> None:
    """Put another pid into the first line of postmaster.pid, which was left by a killed server."""
    file = home.place.data / "postmaster.pid"
    file.write_text("\n".join([pid, *file.read_text().splitlines()[1:]]) + "\n")


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_no_second_server_starts_beside_a_backend_that_outlived_its_postmaster(home: Home) -> None:
    """PostgreSQL's own interlock holds although the stale pid file is gone; the error says so, and it passes."""
    kernel = home.running_kernel()
    kernel("import psycopg; held = psycopg.connect(cluster.dsn)")
    backend = kernel("held.info.backend_pid")
    send(signal.SIGSTOP, backend)
    try:
        home.kill_server()
        with pytest.raises(RemoteError, match="pre-existing shared memory block") as caught:
            kernel("cluster.ensure()")
        assert caught.value.hint == "A process of the server before still runs: try again once it has ended."
    finally:
        send(signal.SIGKILL, backend)
    wait_until(lambda: not command_line(backend))
    assert kernel("cluster.ensure()") == home.dsn


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_a_server_that_cannot_start_is_given_up_and_told(home: Home) -> None:
    settings = home.place.data / "postgresql.auto.conf"
    before = settings.read_text()
    settings.write_text("shared_buffers = 'lots'\n")
    try:
        kernel = home.kernel()
        with pytest.raises(RemoteError, match='invalid value for parameter "shared_buffers"') as caught:
            kernel("cluster.ensure()")
        assert "ended 4 times within a minute" in caught.value.message
        assert caught.value.hint == f"The whole log: {home.place.log}"
    finally:
        settings.write_text(before)
    assert kernel("cluster.ensure()") == home.dsn


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_every_kernel_that_waits_is_told_the_same_error(home: Home) -> None:
    settings = home.place.data / "postgresql.auto.conf"
    before = settings.read_text()
    settings.write_text("shared_buffers = 'lots'\n")
    try:
        kernels = [home.kernel() for _ in range(4)]
        for kernel in kernels:
            kernel.send("cluster.ensure()")
        for kernel in kernels:
            with pytest.raises(RemoteError, match="shared_buffers"):
                kernel.answer()
    finally:
        settings.write_text(before)


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_a_supervisor_that_cannot_even_tell_its_error_is_given_up(home: Home) -> None:
    settings = home.place.data / "postgresql.auto.conf"
    before = settings.read_text()
    settings.write_text("shared_buffers = 'lots'\n")
    in_the_way = home.place.directory / "error.new"
    in_the_way.mkdir()
    try:
        with pytest.raises(RemoteError, match="did not become ready") as caught:
            home.kernel()("cluster.ensure()")
        assert len(caught.value.message.splitlines()) <= 4
    finally:
        in_the_way.rmdir()
        settings.write_text(before)


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_a_home_that_cannot_be_written_is_told(home: Home) -> None:
    home.place.host_file.unlink()
    home.place.host_file.mkdir()
    try:
        with pytest.raises(RemoteError, match=r"pg18/host: Is a directory") as caught:
            home.kernel()("cluster.ensure()")
        assert caught.value.kind == "ServerStartError"
    finally:
        home.place.host_file.rmdir()


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_a_server_whose_socket_was_deleted_is_told_with_a_way_out(home: Home) -> None:
    kernel = home.running_kernel()
    for file in home.socket_directory.iterdir():
        file.unlink()
    with pytest.raises(RemoteError, match="does not answer") as caught:
        kernel("cluster.ensure(timeout_s=0.5)")
    assert "memkernel stop" in caught.value.hint
    assert kernel("cluster.stop()") is True
    assert kernel("cluster.ensure()") == home.dsn


# -- stop, status, threads ---------------------------------------------------------------------------


def test_stop_ends_the_server_whoever_uses_it(home: Home) -> None:
    user, other = home.running_kernel(), home.kernel()
    assert other("cluster.stop()") is True
    assert home.is_idle
    assert other("cluster.stop()") is False
    assert user("cluster.ensure()") == home.dsn


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_stop_ends_a_server_without_a_supervisor(home: Home) -> None:
    kernel = home.running_kernel()
    send(signal.SIGKILL, home.supervisor)
    wait_until(lambda: not home.supervisor)
    assert kernel("cluster.stop()") is True
    assert home.is_idle
    assert not (home.place.data / "postmaster.pid").exists()


def test_status_tells_what_runs(home: Home) -> None:
    kernel = home.running_kernel()
    home.running_kernel()
    kernel("status = cluster.status()")
    assert kernel("status.running, status.supervised, status.clients, status.warnings") == [True, True, 2, []]
    assert kernel("status.postmaster_pid") == home.postmaster
    assert kernel("str(status.data_directory), str(status.log)") == [str(home.place.data), str(home.place.log)]
    assert kernel("status.binaries.major") == home.major


def test_status_makes_nothing(new_home: Callable[[], Home]) -> None:
    home = new_home()
    kernel = home.kernel()
    assert kernel("cluster.status().running, cluster.status().clients, cluster.stop()") == [False, 0, False]
    assert not home.path.exists()


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_threads_may_ask_for_the_server_at_once(home: Home) -> None:
    kernel = home.kernel()
    kernel("from concurrent.futures import ThreadPoolExecutor")
    found = kernel("[*ThreadPoolExecutor(16).map(lambda _: cluster.ensure(), range(32))]")
    assert found == [home.dsn] * 32
    assert kernel("cluster.status().clients") == 1


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_a_home_that_was_deleted_under_a_kernel_is_made_anew(new_home: Callable[[Kind], Home], kind: Kind) -> None:
    home = new_home(kind)
    kernel = home.running_kernel()
    kernel("cluster.stop(); import shutil; shutil.rmtree(cluster.home)")
    assert kernel("cluster.ensure()") == home.dsn
    assert kernel("cluster.status().clients") == 1


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_a_log_that_grew_too_long_is_cut_at_the_start(home: Home) -> None:
    with home.place.log.open("a") as log:
        log.write("x" * 99 + "\n" + ("y" * 99 + "\n") * 20_000)
    home.running_kernel()
    assert home.place.log.stat().st_size < 200_000
    assert home.log.startswith("yyy")
    assert "ready to accept connections" in home.log


def test_what_a_person_keeps_is_not_in_the_log(home: Home) -> None:
    home.running_kernel()
    with pytest.raises(RemoteError, match="division by zero"):
        home.rows("SELECT 1 / 0 /* a-secret-of-mine */")
    assert "a-secret-of-mine" not in home.log
