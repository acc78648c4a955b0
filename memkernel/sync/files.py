"""The host's writes into a mount: whatever others do there meanwhile, nothing lands outside, and no text is lost.

A new file is made in the folder `aside`, which the sandbox does not see, and then exchanged with what is at its path:
what was there is out of reach before it is looked at, and is kept unless its content is known (SANDBOX.md, Decision 9).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from memkernel import paths
from memkernel.errors import SyncError
from memkernel.folders import HeldFolder
from memkernel.sync import renames
from memkernel.sync.aside import Aside, PutAside, make_movable
from memkernel.sync.parents import RESTLESS, TRIES, Parents, Unwritable
from memkernel.sync.reading import write_all_back
from memkernel.sync.scan import check_in_place

__all__ = ["MountFiles", "PutAside", "Unwritable", "Written"]

_SYNCED_ONE_BY_ONE: Final = 32
_ABOUT_THE_PATH: Final = {
    errno.ENAMETOOLONG: "a segment of it is longer than a file's name may be here",
    errno.EILSEQ: "its characters cannot be in a file's name here",
}


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was put in the mount; `put_aside` is what had been at its path, or in its way, unless known."""

    status: os.stat_result = field(repr=False)
    put_aside: tuple[PutAside, ...] = ()


@dataclass(frozen=True, slots=True)
class Writes:
    """What became of several writes, by path; `unwritable` says why no file can be there."""

    written: Mapping[str, Written]
    unwritable: Mapping[str, str]


class MountFiles:
    """Writes into one mount, and holds its folder. One thread at a time.

    Paths are memory paths. `known` are the SHA-256 of the texts that need not be kept: the baseline's and the head's.
    """

    def __init__(
        self,
        folder: Path,
        aside: Path,
        *,
        owner: tuple[int, int] | None,
        name: str | None = None,
        max_file_bytes: int = 102_400,
        folds_case: bool | None = None,
    ) -> None:
        """Hold the mount's folder, and make the folder for what has to make way.

        Args:
            folder: the mount's folder on the host.
            aside: a folder on the same file system, outside every mount.
            owner: uid and gid that files and folders are given; None: they stay this account's.
            name: what a person knows the mount by, for messages; None: its path on the host.
            max_file_bytes: the size of the largest memory.
            folds_case: whether names that differ in case only are one here; None: the disk is asked.

        Raises:
            SyncError: one of them cannot be used, or they lie on two file systems.
        """
        self._owner = owner
        self._name = name or str(folder)
        try:
            self._held = HeldFolder(folder)
            self._aside = Aside(aside, max_file_bytes=max_file_bytes)
        except OSError as error:
            raise SyncError(f"{self._name} cannot be synced: {error.strerror or error}") from None
        if self._held.device != self._aside.held.device:
            raise SyncError(f"{self._name} and the folder for what has to make way lie on two file systems")
        folds_case = self._aside.folds_case() if folds_case is None else folds_case
        self._parents = Parents(self._held, self._aside, owner=owner, folds_case=folds_case)
        self._emptied: set[str] = set()

    def close(self) -> None:
        """Let go of the folders."""
        self._parents.leave()
        self._held.close()
        self._aside.held.close()

    # -- writing ---------------------------------------------------------------------------------------

    def write(self, path: str, content: bytes, known: Container[bytes]) -> Written:
        """Put a file there, with the folders above it; whatever is there or in the way makes way.

        The file is on the disk and complete before it is seen; a reader finds the old one or the new one.

        Raises:
            InvalidPathError: no memory can have that path.
            Unwritable: no file can be there.
            SyncError: the mount's folder was replaced; the disk is full or broken.
        """
        done = self.write_all({path: content}, lambda _: known)
        if path in done.unwritable:
            raise Unwritable(path, done.unwritable[path])
        return done.written[path]

    def write_all(self, contents: Mapping[str, bytes], known: Callable[[str], Container[bytes]]) -> Writes:
        """`write` for many: the disk is waited for once. A path that cannot be written does not stop the others.

        Raises:
            InvalidPathError: no memory can have that path.
            SyncError: as `write`; some of the files may have been put there.
        """
        check_in_place(self._held, self._name)
        for path in contents:
            paths.check_path(path)
        written: dict[str, Written] = {}
        unwritable: dict[str, str] = {}
        made: dict[str, tuple[str, os.stat_result]] = {}
        try:
            for path, content in contents.items():
                with _told(path):
                    made[path] = self._aside.create(content, self._owner)
            self._sync([name for name, _ in made.values()])
            for path, (name, status) in list(made.items()):
                try:
                    put_aside = self._install(name, path, known)
                except Unwritable as why:
                    unwritable[path] = why.reason
                else:
                    written[path] = Written(status, put_aside)
                    del made[path]
        finally:
            self._parents.leave()
            for name, _ in made.values():
                self._aside.discard_new(name)
        return Writes(written, unwritable)

    def _sync(self, names: list[str]) -> None:
        if len(names) > _SYNCED_ONE_BY_ONE:
            write_all_back(self._aside.fd)
            return
        for name in names:
            self._aside.sync_file(name)

    def _install(self, name: str, path: str, known: Callable[[str], Container[bytes]]) -> tuple[PutAside, ...]:
        put_aside, out = list[PutAside](), list[str]()
        try:
            self._place(name, path, put_aside, out)
        except Unwritable:
            self._aside.postpone([(old, path) for old in out] + [(put.file.name, put.path) for put in put_aside])
            raise
        for old in out:
            put_aside += self._aside.judge(old, path, known(path))
        return tuple(put_aside)

    def _place(self, name: str, path: str, put_aside: list[PutAside], out: list[str]) -> None:
        """Bring a new file to its path; what was in its folders' way goes to `put_aside`, what was there to `out`."""
        folder, _, entry = path.rpartition("/")
        with _told(path):
            for _ in range(TRIES):
                # A folder that is removed while it is written to is made again.
                with contextlib.suppress(FileNotFoundError):
                    self._exchange(name, path, entry, self._parents.enter(path, put_aside), out)
                    self._parents.touched.add(folder)
                    return
                self._parents.leave()
        raise Unwritable(path, RESTLESS)

    def _exchange(self, name: str, path: str, entry: str, fd: int, out: list[str]) -> None:
        is_let_in = False
        for _ in range(TRIES):
            try:
                if self._exchange_once(name, path, entry, fd, out):
                    return
            except PermissionError:
                if is_let_in:
                    raise
                make_movable(entry, dir_fd=fd)
                is_let_in = True
        raise Unwritable(path, RESTLESS)

    def _exchange_once(self, name: str, path: str, entry: str, fd: int, out: list[str]) -> bool:
        try:
            renames.place(name, entry, src_dir_fd=self._aside.fd, dst_dir_fd=fd)
            return True
        except FileExistsError:
            self._aside.note(name, path)
        try:
            is_swapped = renames.swap(name, entry, src_dir_fd=self._aside.fd, dst_dir_fd=fd)
        except OSError as error:
            self._aside.unnote(name)
            if isinstance(error, FileNotFoundError):
                return False
            raise
        if is_swapped:
            out.append(name)
            return True
        self._aside.unnote(name)
        with contextlib.suppress(FileNotFoundError):
            out.append(self._aside.take(entry, path, dir_fd=fd))
        return False

    # -- removing --------------------------------------------------------------------------------------

    def remove(self, path: str, known: Container[bytes]) -> tuple[PutAside, ...]:
        """Take the file there away; what it was, unless known. A folder there is no file, and stays.

        Raises:
            InvalidPathError: no memory can have that path.
            SyncError: as `write`.
        """
        return self._take(path, known, folders=False)

    def put_aside(self, path: str) -> tuple[PutAside, ...]:
        """Take away whatever is there; of a folder, each file that is in it.

        Raises:
            InvalidPathError: no memory can have that path.
            SyncError: as `write`.
        """
        return self._take(path, (), folders=True)

    def _take(self, path: str, known: Container[bytes], *, folders: bool) -> tuple[PutAside, ...]:
        check_in_place(self._held, self._name)
        paths.check_path(path)
        try:
            with _told(path), contextlib.suppress(FileNotFoundError, NotADirectoryError), self._parents.of(path) as fd:
                entry = path.rpartition("/")[2]
                if not folders and _is_folder(entry, fd):
                    return ()
                name = self._aside.take(entry, path, dir_fd=fd)
                self._emptied.add(path.rpartition("/")[0])
                self._parents.touched.add(path.rpartition("/")[0])
                return self._aside.judge(name, path, known)
        except Unwritable:  # its name is longer than any file's is here
            pass
        return ()

    def prune_folders(self) -> None:
        """Remove the folders that `remove` and `put_aside` have emptied; others that are empty stay."""
        for folder in sorted(self._emptied, key=len, reverse=True):
            path = folder
            while path and self._is_pruned(path):
                path = path.rpartition("/")[0]
        self._emptied.clear()

    def _is_pruned(self, path: str) -> bool:
        try:
            with self._parents.of(path) as fd:
                os.rmdir(path.rpartition("/")[2], dir_fd=fd)
        except OSError:
            return False
        return True

    # -- afterwards ------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Let all renames and removals so far be on the disk: after a power failure they are not undone.

        Raises:
            SyncError: the disk is broken.
        """
        touched, self._parents.touched = self._parents.touched, set()
        if len(touched) > _SYNCED_ONE_BY_ONE:
            write_all_back(self._held.fd)
            return
        for folder in touched:
            is_gone = contextlib.suppress(FileNotFoundError, NotADirectoryError)
            with _told(folder or "/"), is_gone, self._parents.of(f"{folder}/.") as fd:
                os.fsync(fd)

    def let_go(self) -> None:
        """Remove the known texts that made way, once `flush` was called: all that nobody can write to any more."""
        self._aside.let_go()

    def latecomers(self) -> tuple[PutAside, ...]:
        """What those who held a file open have written into it since it was replaced; what could not be told before.

        Ask before each sync, and in the last one.
        """
        return self._aside.latecomers()

    def leftovers(self) -> tuple[PutAside, ...]:
        """What a process that ended in the middle has left aside. Ask once, at the start."""
        return self._aside.leftovers()

    def discard(self, put: PutAside) -> None:
        """Its text is recorded elsewhere."""
        self._aside.discard(put.file.name)


class _told:  # noqa: N801  # a generator would do, for thrice the time, and thousands of files are written
    """An OSError as what it means: for this path, or for all."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if not isinstance(error, OSError):
            return
        path, reason = self._path, _ABOUT_THE_PATH.get(error.errno or 0)
        if reason is not None:
            raise Unwritable(path, reason) from None
        raise SyncError(
            f"{path} cannot be written to the mount: {(error.strerror or str(error)).lower()}",
            hint="What lies in the mount is kept; the next sync tries again.",
        ) from error


def _is_folder(entry: str, fd: int) -> bool:
    return stat.S_ISDIR(os.stat(entry, dir_fd=fd, follow_symlinks=False).st_mode)
