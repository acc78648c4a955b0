"""A copy of the binaries for an account that cannot reach the wheel: below /root everything is closed to it."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from memkernel.cluster.accounts import Account
from memkernel.cluster.binaries import Binaries
from memkernel.cluster.places import check_owner, make_directory
from memkernel.cluster.supervisor import lock
from memkernel.errors import ServerStartError

_LEFT_OUT = shutil.ignore_patterns("include", "*.a", "pgxs", "pkgconfig", "__pycache__", "doc", "man")


def reachable_by(account: Account, binaries: Binaries, home: Path) -> Binaries:
    """These binaries, or a copy below `home` where the account cannot run them.

    Raises:
        ServerStartError: it cannot run the copy either.
    """
    if account.is_ours() or account.can_run([binaries.directory / "postgres", "--version"]):
        return binaries
    copy = _copy_of(binaries, home / "dist")
    if not account.can_run([copy / "postgres", "--version"]):
        raise ServerStartError(
            f"the account {account.name} can run neither {binaries.directory} nor its copy in {copy}",
            hint="Set MEMKERNEL_HOME to a directory that every account can enter, on a disk that allows programs.",
        )
    return dataclasses.replace(binaries, directory=copy)


def _copy_of(binaries: Binaries, dist: Path) -> Path:
    """The copy's directory of programs; it is made by the first who asks."""
    installation = binaries.directory.parent
    package = installation.parent
    modified = int(binaries.directory.stat().st_mtime)
    final = dist / f"{package.name}-{binaries.version}-{modified}"
    make_directory(dist, 0o755)
    check_owner(dist)
    with _alone(dist / "lock"):
        if not final.exists():
            new = dist / "new"
            shutil.rmtree(new, ignore_errors=True)
            _copy_installation(installation, new)
            _open_up(new)
            new.rename(final)
    return final / package.name / installation.name / binaries.directory.name


def _copy_installation(installation: Path, new: Path) -> None:
    """Programs, libraries and share, and the wheel's own libraries beside them: RPATH leads from one to the other."""
    package = installation.parent
    libraries = (package.with_name(f"{package.name}.libs"), package / ".dylibs")
    for source in (installation, *filter(Path.is_dir, libraries)):
        shutil.copytree(source, new / source.relative_to(package.parent), symlinks=True, ignore=_LEFT_OUT)


def _open_up(tree: Path) -> None:
    """Let every account read and run the copy, whatever umask the original was made under."""
    for parent, _, files in os.walk(tree):
        Path(parent).chmod(0o755)
        for file in map(Path(parent).joinpath, files):
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)


@contextmanager
def _alone(path: Path) -> Generator[None]:
    import fcntl

    held = lock(str(path), fcntl.LOCK_EX, timeout_s=60.0)
    if held is None:
        raise ServerStartError(f"another process has been copying PostgreSQL for a minute (it holds {path})")
    try:
        yield
    finally:
        os.close(held)
