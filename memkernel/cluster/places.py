"""Where everything lies: HOME/pg18/{data,run,postgres.log,…}, one data directory for each major version."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from memkernel.errors import ClusterError, ServerStartError

PORT = 5432  # it only names the socket file: nothing listens on TCP
_SOCKET_NAME = f".s.PGSQL.{PORT}"
_SOCKET_PATH_BYTES = 103 if sys.platform == "darwin" else 107
USE_ANOTHER_HOME = "Set MEMKERNEL_HOME to a directory of your own, on a local disk."


@dataclass(frozen=True, slots=True)
class Place:
    """One major version's directory below the home."""

    home: Path
    major: int

    @property
    def directory(self) -> Path:
        """Holds the data, the socket, the log and the locks."""
        return self.home / f"pg{self.major}"

    @property
    def data(self) -> Path:
        """PostgreSQL's data directory."""
        return self.directory / "data"

    @property
    def log(self) -> Path:
        """What PostgreSQL and its supervisor say."""
        return self.directory / "postgres.log"

    @property
    def host_file(self) -> Path:
        """Names the machine that started the server last."""
        return self.directory / "host"

    @property
    def socket_directory(self) -> Path:
        """`run`, or a short directory in /tmp where the socket's path would not fit or could not be said in a DSN.

        Not below TMPDIR or XDG_RUNTIME_DIR: they differ between kernels of one user.
        """
        own = self.directory / "run"
        text = str(own)
        longest = len(os.fsencode(own)) + len(f"/{_SOCKET_NAME}.lock")
        if text.isprintable() and "," not in text and longest <= _SOCKET_PATH_BYTES:
            return own
        digest = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:12]
        return Path(f"/tmp/memkernel-{os.geteuid()}-{digest}")

    @property
    def socket_file(self) -> Path:
        """What clients connect to."""
        return self.socket_directory / _SOCKET_NAME


def home_directory(home: Path | str | None = None) -> Path:
    """The home: the given one, else the user's data directory; for root /var/lib/memkernel.

    (A service account cannot enter /root.) Symbolic links are resolved, so that two spellings are one place.

    Raises:
        ClusterError: it has a line break, which PostgreSQL's files cannot hold; or it is no place, such as a relative
            path where the working directory is gone.
    """
    try:
        path = (Path(home).expanduser() if home else _default_home()).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise ClusterError(f"the home {str(home)!r} is no place: {_reason(error)}", hint=USE_ANOTHER_HOME) from None
    if "\n" in str(path) or "\r" in str(path):
        raise ClusterError(f"the home {str(path)!r} has a line break", hint=USE_ANOTHER_HOME)
    return path


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _default_home() -> Path:
    if os.geteuid() == 0:
        return Path("/var/lib/memkernel")
    from platformdirs import user_data_path

    return user_data_path("memkernel", appauthor=False)


def places_below(home: Path) -> list[Place]:
    """The places that somebody has used, the highest major first."""
    named = (re.fullmatch(r"pg(\d+)", name) for name in _names_in(home))
    return [Place(home, major) for major in sorted((int(found[1]) for found in named if found), reverse=True)]


def existing_majors(home: Path) -> list[int]:
    """The majors that have a data directory below the home, highest first."""
    # os.path: what another user's directory hides is not there, where pathlib raises.
    return [place.major for place in places_below(home) if os.path.exists(place.data / "PG_VERSION")]


def _names_in(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def make_directory(path: Path, mode: int) -> None:
    """Make a directory and its missing parents with this mode, whatever the umask; existing ones are left alone.

    Raises:
        ClusterError: it cannot be made.
    """
    try:
        for missing in reversed([place for place in (path, *path.parents) if not place.exists()]):
            missing.mkdir(mode, exist_ok=True)
            missing.chmod(mode)
    except OSError as error:
        raise ClusterError(f"cannot make {path}: {error.strerror}", hint=USE_ANOTHER_HOME) from None


def check_makeable(path: Path) -> None:
    """Refuse a place where the directory could not be made; nothing is made.

    Raises:
        ClusterError: it, or what it would lie in, is no directory or may not be written to.
    """
    nearest = next(place for place in (path, *path.parents) if os.path.lexists(place))
    if not os.path.isdir(nearest):
        raise ClusterError(f"{path} cannot be used: {nearest} is no directory", hint=USE_ANOTHER_HOME)
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ClusterError(f"{path} cannot be used: no right to write in {nearest}", hint=USE_ANOTHER_HOME)


def make_private(path: Path, uid: int, gid: int) -> None:
    """Make the directory, or take it, as `uid`'s own with mode 0700.

    Raises:
        ServerStartError: it is a link or no directory, another user's, or on a disk that keeps no modes.
    """
    make_directory(path, 0o700)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise ServerStartError(f"{path} cannot be used: {error.strerror}", hint="Remove it.") from None
    try:
        _take(path, descriptor, uid, gid)
    finally:
        os.close(descriptor)


def _take(path: Path, descriptor: int, uid: int, gid: int) -> None:
    owner = os.fstat(descriptor).st_uid
    if owner not in (uid, os.geteuid()):
        raise ServerStartError(f"{path} belongs to another user (uid {owner})", hint="Remove it, or use another home.")
    try:
        if owner != uid:
            os.fchown(descriptor, uid, gid)
        os.fchmod(descriptor, 0o700)
    except PermissionError:
        pass  # what became of it is checked below
    found = os.fstat(descriptor)
    if found.st_uid != uid or found.st_mode & 0o777 != 0o700:
        raise ServerStartError(f"the disk of {path} does not keep owner and mode 0700", hint=USE_ANOTHER_HOME)


def check_owner(path: Path) -> None:
    """Refuse another user's directory: root would write where they have put links.

    Raises:
        ServerStartError: it is another user's.
    """
    if (owner := path.lstat().st_uid) != os.geteuid():
        raise ServerStartError(f"{path} belongs to another user (uid {owner})", hint=USE_ANOTHER_HOME)


def check_host(place: Place) -> None:
    """Refuse a data directory that another machine has open, or left behind in a crash.

    Raises:
        ServerStartError: names the file to remove once the other machine is known to be gone.
    """
    try:
        last = place.host_file.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return
    if last and last != socket.gethostname() and (place.data / "postmaster.pid").exists():
        raise ServerStartError(
            f"{place.data} is in use on the host {last}, or was left unclean there",
            hint=f"Stop it there. If that host is gone for good, remove {place.host_file} and try again.",
        )
