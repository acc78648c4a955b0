"""Where sessions lie on this machine (SANDBOX.md, Decision 7).

HOME/installation               whose session folders and containers these are
HOME/rejected/                  the texts that were put aside
HOME/sessions/sesn_…/           one running session (see folders.py)
/dev/shm/memkernel-UID/sesn_…/  its mounts, where a memory file system is big enough for them
"""

from __future__ import annotations

import fcntl
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memkernel import folders
from memkernel.cluster import home_directory
from memkernel.cluster.filesystem import filesystem_of, warnings_for
from memkernel.cluster.places import make_directory
from memkernel.errors import MemkernelError, MountError

MEMORY_DISKS: Final = (Path("/dev/shm"),)
_ID_BYTES: Final = 8
_ANOTHER_HOME: Final = "Set MEMKERNEL_HOME to a folder of your own."


@dataclass(frozen=True, slots=True)
class Home:
    """MEMKERNEL_HOME as far as sessions go; nothing is made before it is needed."""

    directory: Path

    @classmethod
    def of(cls, home: str | None) -> Home:
        """The home that Settings names.

        Raises:
            ClusterError: it is no place.
        """
        return cls(home_directory(home))

    @property
    def sessions(self) -> Path:
        """Holds a folder for each session that runs, or whose end nobody saw."""
        return self.directory / "sessions"

    def prepare(self) -> None:
        """Make the folder of the sessions.

        Raises:
            MountError: it cannot be made, or is another user's.
        """
        make_private(self.sessions)

    @property
    def is_shared(self) -> bool:
        """Whether it lies on a disk that other machines may have, too."""
        return bool(warnings_for(self.directory))

    @property
    def is_known(self) -> bool:
        """Whether a sandbox was ever made here."""
        return (self.directory / "installation").exists()

    def installation_id(self) -> str:
        """16 hex digits that name this home on the label of each of its containers; made with the first sandbox."""
        file = self.directory / "installation"
        while True:
            with suppress(FileNotFoundError):
                known = file.read_text().strip()
                if known:
                    return known
                _drop_cut_off(file)
            self._name_installation(file)

    def _name_installation(self, file: Path) -> None:
        self.prepare()
        draft = self.sessions / f".installation-{secrets.token_hex(_ID_BYTES)}"
        draft.write_text(secrets.token_hex(_ID_BYTES) + "\n")
        try:
            with suppress(FileExistsError):  # two first sandboxes at once
                os.link(draft, file)
        finally:
            draft.unlink(missing_ok=True)


def _drop_cut_off(file: Path) -> None:
    """Remove an empty file, which a full disk once cut off; not the whole one that has taken its place since."""
    with file.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if os.path.samestat(os.fstat(held.fileno()), file.stat()) and not held.read():
            file.unlink()


def make_private(path: Path) -> None:
    """Make a folder of mode 0700, or take one that is.

    Raises:
        MountError: it cannot be made, or belongs to another user.
    """
    try:
        # As the embedded PostgreSQL makes the home: root's is also the service account's.
        make_directory(path.parent, 0o755 if os.geteuid() == 0 else 0o700)
        folders.make_private_folder(path)
    except OSError as error:
        raise MountError(str(path), error.strerror or str(error), hint=_ANOTHER_HOME) from None


def place_of_mounts(home: Home, session_id: str, needed_bytes: int) -> Path:
    """Where a session's mounts go: into its folder, or onto a memory file system that has room for them."""
    own = home.sessions / session_id
    return (_memory_disk(session_id, needed_bytes) or own) if home.is_shared else own


def _memory_disk(session_id: str, needed_bytes: int) -> Path | None:
    """Below a private folder of this user's: what another user has put in its place is not taken."""
    for disk in MEMORY_DISKS:
        if filesystem_of(disk) != "tmpfs" or not os.access(disk, os.W_OK | os.X_OK):
            continue
        room = os.statvfs(disk)
        if room.f_bavail * room.f_frsize < needed_bytes:
            continue
        with suppress(MemkernelError):
            private = disk / f"memkernel-{os.geteuid()}"
            make_private(private)
            return private.resolve() / session_id
    return None
