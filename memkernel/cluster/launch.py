"""Start a supervisor: check what it will need, write its orders, hand them over."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from memkernel.cluster import environment, initdb, supervisor
from memkernel.cluster.accounts import Account, own_account
from memkernel.cluster.binaries import Binaries
from memkernel.cluster.places import PORT, Place, check_owner, make_directory, make_private
from memkernel.cluster.private_copy import reachable_by
from memkernel.cluster.trouble import start_error
from memkernel.errors import ServerStartError

if TYPE_CHECKING:
    from memkernel.cluster.supervisor import Orders

LOG_LIMIT_BYTES, LOG_KEPT_BYTES = 1_000_000, 100_000


def make_place(place: Place, account: Account) -> None:
    """Make the directory of this major version, where there is none.

    Raises:
        ClusterError: it cannot be made.
    """
    # Root's is open to be entered: the server's account must get to `data` and `run`, which are its own.
    for directory in (place.home, place.directory):
        make_directory(directory, 0o700 if account.is_ours() else 0o755)


def start_supervisor(place: Place, binaries: Binaries, account: Account, linger_s: float) -> bool:
    """Start a supervisor in the background; it holds the server's lock when this returns. False: another does.

    Raises:
        ServerStartError: it cannot run here.
    """
    prepare(place, account)
    try:
        orders = _orders(place, reachable_by(account, binaries, place.home), account, linger_s)
        place.host_file.write_text(socket.gethostname())
        code = _run(place, orders)
    except OSError as error:  # a full disk, most likely
        raise start_error(place, f"{error.filename or place.directory}: {error.strerror or error}") from None
    if code not in (0, supervisor.BUSY):
        raise start_error(place, f"its supervisor failed (exit code {code})", log_start=orders["log_start"])
    return code == 0


def prepare(place: Place, account: Account) -> None:
    """Check the place before the server's account is sent there.

    Raises:
        ServerStartError: it is on a disk without modes, another user's, closed to the account, or holds other files.
    """
    check_owner(place.directory)
    if account.is_ours():
        make_private(place.directory, account.uid, account.gid)
    elif not account.can_enter(place.directory):
        raise ServerStartError(
            f"the account {account.name}, which PostgreSQL runs as, cannot enter {place.directory}",
            hint="Set MEMKERNEL_HOME to a directory that every account can enter, for example /var/lib/memkernel.",
        )
    make_private(place.socket_directory, account.uid, account.gid)
    if place.data.is_dir() and not (place.data / "PG_VERSION").exists() and any(place.data.iterdir()):
        raise ServerStartError(
            f"{place.data} holds files, and is no PostgreSQL data directory",
            hint="Move it away, or set MEMKERNEL_HOME to another directory.",
        )


def cap_log(log: Path) -> int:
    """Cut a log that grew too long down to its end; the bytes that are left."""
    if not log.exists():
        return 0
    with log.open("r+b") as file:
        size_bytes = file.seek(0, os.SEEK_END)
        if size_bytes <= LOG_LIMIT_BYTES:
            return size_bytes
        file.seek(-LOG_KEPT_BYTES, os.SEEK_END)
        kept = file.read().partition(b"\n")[2]
        file.seek(0)
        file.write(kept)
        return file.truncate()


def _orders(place: Place, binaries: Binaries, account: Account, linger_s: float) -> Orders:
    sockets = ("listen_addresses=", f"unix_socket_directories={place.socket_directory}", "unix_socket_permissions=0700")
    return {
        "binaries": str(binaries.directory),
        "socket_file": str(place.socket_file),
        "environment": environment.for_postgres(),
        "uid": account.uid,
        "gid": account.gid,
        "initdb_options": initdb.options(binaries.major),
        "files": initdb.files(binaries.major, own_account().name),
        "sql": initdb.SQL,
        "server_options": ["-p", str(PORT), *(part for setting in sockets for part in ("-c", setting))],
        "linger_s": linger_s,
        "log_start": cap_log(place.log),
        "psutil_path": _psutil_path(),
    }


def _psutil_path() -> str | None:
    """Where the supervisor, which has no site-packages, finds psutil; only needed without /proc."""
    spec = None if os.path.isdir("/proc/self") else find_spec("psutil")
    return str(Path(spec.origin).parent.parent) if spec and spec.origin else None


def _run(place: Place, orders: Orders) -> int:
    command = [sys.executable, "-I", "-S", supervisor.__file__, str(place.directory)]
    with open(place.log, "ab", opener=_open_private) as log, subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd="/", start_new_session=True,
        env=environment.for_supervisor(),
    ) as process:  # fmt: skip
        # It goes into the background at once: what ends here is its first process.
        process.communicate(json.dumps(orders).encode())
        return process.returncode


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
