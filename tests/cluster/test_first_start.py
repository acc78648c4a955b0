"""The first start: a cluster is made once, whole, whoever asks and whatever is killed meanwhile."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memkernel.cluster.processes import is_supervised
from tests.cluster.conftest import POSTGRES_15, Kind
from tests.cluster.homes import Home, RemoteError, send, wait_until

HOSTILE = {
    "PGPORT": "6543",
    "PGDATA": "/nonexistent",
    "PGHOST": "example.invalid",
    "PGHOSTADDR": "192.0.2.1",
    "PGUSER": "bob",
    "PGDATABASE": "nope",
    "PGPASSWORD": "x",
    "PGSSLMODE": "require",
    "PGOPTIONS": "-c work_mem=nonsense",
    "PGSERVICE": "team",
    "PGCHANNELBINDING": "require",
    "PGTARGETSESSIONATTRS": "standby",
    "PGCLIENTENCODING": "LATIN1",
    "LC_ALL": "xx_XX.UTF-8",
    "LANG": "zz",
    "TZ": "Nowhere/Bad",
    "DATABASE_URL": "postgresql://bob:x@example.invalid/production",
}
FACTS = "SELECT current_user, current_database(), current_setting('port'), current_setting('TimeZone'), upper('żółw')"


def test_eight_first_starts_at_once_make_one_cluster_and_one_server(fresh_home: Home) -> None:
    fresh_home.linger_s = 30.0
    kernels = [fresh_home.kernel() for _ in range(8)]
    for kernel in kernels:
        kernel.send("cluster.ensure()")
    assert {kernel.answer() for kernel in kernels} == {fresh_home.dsn}
    assert {kernel("cluster.status().postmaster_pid") for kernel in kernels[:2]} == {fresh_home.postmaster}
    assert fresh_home.log.count("PostgreSQL stand-alone backend") == 1
    assert fresh_home.leftovers == []


@pytest.mark.parametrize("moment", range(4))
def test_a_first_start_that_is_killed_leaves_no_broken_cluster(fresh_home: Home, moment: int) -> None:
    """Twelve kills in all (fault 58): of the kernel's group, every other time of initdb and the supervisor too."""
    kernel = fresh_home.kernel()
    kernel.send("cluster.ensure()")
    wait_until(lambda: is_supervised(fresh_home.place))
    time.sleep(0.05 + 0.15 * moment)  # a different moment each time; where it falls does not matter
    kernel.kill_group()
    if moment % 2:
        for pid in fresh_home.processes():
            send(signal.SIGKILL, pid)

    fresh_home.running_kernel()
    assert fresh_home.rows("SELECT 1") == [[1]]
    assert fresh_home.leftovers == []


def test_a_kernel_that_dies_in_its_first_start_leaves_a_cluster_and_no_server(new_home: Callable[..., Home]) -> None:
    home = new_home()
    kernel = home.kernel()
    kernel.send("cluster.ensure()")
    wait_until(lambda: is_supervised(home.place))
    kernel.kill_group()
    wait_until(lambda: home.is_idle)
    assert (home.place.data / "PG_VERSION").exists()
    assert not (home.place.data / "postmaster.pid").exists()


def test_leftovers_of_killed_first_starts_are_deleted_at_each_start(home: Home) -> None:
    for leftover in (home.place.directory / "data.new-1", home.place.directory / "data.new-1" / "base"):
        leftover.mkdir()
        home.person.own(leftover)
    home.running_kernel()
    wait_until(lambda: home.leftovers == [])


def test_a_hostile_environment_changes_nothing(fresh_home: Home) -> None:
    services = fresh_home.path.parent / "services.conf"
    services.write_text("[team]\nhost=example.invalid\nhostaddr=192.0.2.1\ndbname=production\nuser=bob\n")
    hostile = HOSTILE | {"PGSERVICEFILE": str(services)} | _hostile_library_path(fresh_home)
    kernel = fresh_home.kernel(environment=hostile)
    assert kernel("cluster.ensure()") == fresh_home.dsn
    kernel("import psycopg; held = psycopg.connect(cluster.dsn)")
    found = kernel(f"held.execute({FACTS!r}).fetchone()")
    kernel("held.close()")
    upper = "ŻÓŁW" if fresh_home.major >= 17 else "żółW"  # without the builtin provider, C knows ASCII only
    assert found == ["memkernel", "memkernel", "5432", "UTC", upper]


def _hostile_library_path(home: Home) -> dict[str, str]:
    needed = home.person.environment.get("LD_LIBRARY_PATH") or os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": f"{needed}:/nonexistent" if needed else "/nonexistent"}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(("ordinary", None), "with space", id="ordinary-space"),
        pytest.param(("ordinary", None), "qu'ote\"d $HOME `x` \\ %41", id="ordinary-quotes"),
        pytest.param(("ordinary", None), "żółw ☃", id="ordinary-unicode"),
        pytest.param(("ordinary", None), "com,ma", id="ordinary-comma"),
        pytest.param(("ordinary", None), "x" * 100 + "/" + "y" * 120, id="ordinary-long"),
        pytest.param(("ordinary", POSTGRES_15), "a b,'c'/" + "ż" * 60, id="ordinary-postgres15"),
        pytest.param(("root", None), "a b,'c'/" + "ż" * 60, id="root", marks=pytest.mark.as_root),
    ],
)
def test_a_home_may_have_any_name(new_home: Callable[..., Home], kind: Kind, name: str) -> None:
    home = new_home(kind, name)
    assert home.running_kernel()("cluster.dsn") == home.dsn
    assert home.rows("SELECT 1") == [[1]]
    assert home.socket_directory.stat().st_mode & 0o777 == 0o700
    assert (home.socket_directory.parent == Path("/tmp")) == ("," in name or len(os.fsencode(name)) > 60)


def test_a_home_with_bytes_that_are_no_text_gets_its_socket_elsewhere(new_home: Callable[..., Home]) -> None:
    home = new_home(name=os.fsdecode(b"caf\xe9"))
    home.running_kernel()
    assert home.rows("SELECT 1") == [[1]]


def test_a_full_disk_is_told_in_one_error_with_a_way_out(new_home: Callable[..., Home]) -> None:
    home = new_home()
    kernel = home.kernel()
    # A limit on the size of files stands for the disk: it makes the same writes fail, and needs no mount.
    kernel("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))")
    with pytest.raises(RemoteError, match="did not start") as caught:
        kernel("cluster.ensure()")
    assert caught.value.kind == "ServerStartError"
    assert 2 <= len(caught.value.message.splitlines()) <= 4
    assert "File too large" in caught.value.message
    assert caught.value.hint == "Free some space, or set MEMKERNEL_HOME to another disk."
    wait_until(lambda: home.is_idle)

    home.running_kernel()
    assert home.leftovers == []


def test_stop_ends_a_first_start_and_leaves_nothing_half_made(fresh_home: Home) -> None:
    kernel = fresh_home.kernel()
    kernel.send("cluster.ensure()")
    wait_until(lambda: fresh_home.place.directory.exists() and fresh_home.leftovers)
    kernel.kill()
    assert fresh_home.kernel()("cluster.stop()") is True
    assert fresh_home.is_idle
    assert fresh_home.leftovers == []
    assert not fresh_home.place.data.exists()
    assert fresh_home.running_kernel()("cluster.status().running") is True


def test_what_is_made_is_set_up_as_it_should_be(home: Home) -> None:
    """The settings of POSTGRES.md 7, and no way in but the socket."""
    home.running_kernel()
    wanted = {
        "shared_buffers": "32MB", "max_connections": "40", "fsync": "on", "synchronous_commit": "on",
        "full_page_writes": "on", "wal_level": "minimal", "max_wal_senders": "0", "max_wal_size": "256MB",
        "min_wal_size": "32MB", "max_logical_replication_workers": "0", "max_worker_processes": "4",
        "max_parallel_workers_per_gather": "0", "max_parallel_maintenance_workers": "0",
        "dynamic_shared_memory_type": "mmap", "jit": "off", "huge_pages": "off", "autovacuum_max_workers": "1",
        "TimeZone": "UTC", "log_timezone": "UTC", "lc_messages": "C", "listen_addresses": "",
        "unix_socket_permissions": "0700", "server_encoding": "UTF8",
    } | ({"io_method": "sync"} if home.major >= 18 else {})  # fmt: skip
    names = ", ".join(f"'{name}'" for name in wanted)
    found = dict(home.rows(f"SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({names})"))
    assert found == wanted
    assert home.rows("SHOW wal_compression")[0][0] in ("on", "pglz")


def test_the_locale_does_not_depend_on_the_system(home: Home) -> None:
    home.running_kernel()
    column = "datlocprovider, " + ("datlocale" if home.major >= 17 else "datcollate")
    found = home.rows(f"SELECT {column} FROM pg_database WHERE datname = 'memkernel'")
    assert found == [["b", "C.UTF-8"] if home.major >= 17 else ["c", "C"]]
