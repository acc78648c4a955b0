"""The folders of a mount that files are written to: opened by one name after another, and made where there is none."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Generator
from typing import Final

from memkernel.folders import HeldFolder, let_in, open_closed, open_folder
from memkernel.sync.aside import Aside, PutAside, give_away

TRIES: Final = 20
RESTLESS: Final = "what is there keeps changing"
_TWIN: Final = "another name there differs from it in case only, which are one name here"


class Unwritable(Exception):  # noqa: N818  # an answer about one path: the others can be written
    """Why no file can be at this path here."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason


class Parents:
    """Finds the folders that paths are in.

    Attributes:
        touched: folders whose entries were changed, as memory paths (`""`: the mount itself).
    """

    def __init__(self, held: HeldFolder, aside: Aside, *, owner: tuple[int, int] | None, folds_case: bool) -> None:
        self._held, self._aside, self._owner, self._folds_case = held, aside, owner, folds_case
        self._entered: tuple[str, int] | None = None
        self.touched: set[str] = set()

    @contextlib.contextmanager
    def of(self, path: str) -> Generator[int]:
        """The folder that a path is in, for the length of a `with`.

        Raises:
            OSError: there is none.
        """
        fd = self._open(path, None)
        try:
            yield fd
        finally:
            os.close(fd)

    def enter(self, path: str, put_aside: list[PutAside]) -> int:
        """The folder that a path is in; it is made, and what is in its way goes to `put_aside`.

        It stays open, for the next path, until `leave`: who moves it meanwhile moves what it is given.

        Raises:
            OSError: the disk is full; it is not ours.
            Unwritable: there cannot be one, or not with this entry.
        """
        folder, _, entry = path.rpartition("/")
        if self._entered is None or self._entered[0] != folder:
            self.leave()
            self._entered = folder, self._open(path, put_aside)
        fd = self._entered[1]
        self._refuse_twin(entry, path, fd)
        return fd

    def leave(self) -> None:
        """Let go of the folder that was entered."""
        if self._entered is not None:
            fd, self._entered = self._entered[1], None
            os.close(fd)

    def _open(self, path: str, put_aside: list[PutAside] | None) -> int:
        fd = os.dup(self._held.fd)
        try:
            let_in(fd)
            at = ""
            for name in path[1:].split("/")[:-1]:
                at += f"/{name}"
                below = open_closed(name, dir_fd=fd) if put_aside is None else self._made(name, at, fd, put_aside)
                above, fd = fd, below
                os.close(above)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _made(self, name: str, at: str, fd: int, put_aside: list[PutAside]) -> int:
        self._refuse_twin(name, at, fd)
        for _ in range(TRIES):
            try:
                return open_closed(name, dir_fd=fd)
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=fd)
                    self._give(name, fd)
                    self.touched.add(at.rpartition("/")[0])
            except OSError as error:
                if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise
                with contextlib.suppress(FileNotFoundError):
                    put_aside += self._aside.judge(self._aside.take(name, at, dir_fd=fd), at, ())
        raise Unwritable(at, RESTLESS)

    def _give(self, name: str, fd: int) -> None:
        """Others may have put something else there by now: then it is theirs already."""
        try:
            made = open_folder(name, dir_fd=fd)
        except OSError:
            return
        try:
            os.fchmod(made, 0o755)
            give_away(made, self._owner, os.fstat(made))
        finally:
            os.close(made)

    def _refuse_twin(self, entry: str, path: str, fd: int) -> None:
        if not self._folds_case:
            return
        folded = entry.casefold()
        if any(name != entry and name.casefold() == folded for name in os.listdir(fd)):
            raise Unwritable(path, _TWIN)
