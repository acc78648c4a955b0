"""One pass over a mount, and what is known of it between two.

No link is followed: every folder is opened by one name in its parent's descriptor, every file by one name, and what it
is is asked of the descriptor. A pass over what is known costs a stat an entry.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import time
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from memkernel import content, paths
from memkernel.errors import InvalidContentError, InvalidPathError
from memkernel.folders import open_folder
from memkernel.sync.reading import (
    GONE,
    FileRead,
    Stamp,
    Unreadable,
    may_be_held,
    read_file,
    stamp,
    why_no_file,
    write_all_back,
    write_back,
)
from memkernel.sync.strays import MARKER_PATH

SETTLED_NS: Final = 2_000_000_000
KEPT_BYTES: Final = 32 << 20
"""Up to this sum a pass keeps the contents that it has read."""

_FLUSHED_ONE_BY_ONE: Final = 8


@dataclass(slots=True)  # not frozen: that takes thrice as long, and a scan makes thousands
class LocalFile:
    """A legal file. `content` is there where this scan read it, up to `KEPT_BYTES` in all."""

    sha256: bytes = field(repr=False)
    size_bytes: int
    content: bytes | None = field(default=None, repr=False, compare=False)


class KnownFolder:
    """What is known of a folder: the stamp of each entry that is none (None: it does not vouch for the content)."""

    __slots__ = ("folders", "stamps")

    def __init__(self) -> None:
        self.stamps: dict[str, Stamp | None] = {}
        self.folders: dict[str, KnownFolder] = {}

    def distrust(self) -> None:
        """Let no stamp vouch for a content."""
        self.stamps = dict.fromkeys(self.stamps)
        for folder in self.folders.values():
            folder.distrust()


class Known:
    """What is known of a mount between two passes. Paths are as they are on disk, illegal ones included."""

    def __init__(self) -> None:
        self.root = KnownFolder()
        self.files: dict[str, LocalFile] = {}
        self.refused: dict[str, str] = {}

    def set_file(self, path: str, file: LocalFile) -> bool:
        """Whether that is new."""
        before = self.files.get(path)
        self.files[path] = file
        return self.refused.pop(path, None) is not None or before != file

    def set_refused(self, path: str, reason: str) -> bool:
        """Whether that is new."""
        before = self.refused.get(path)
        self.refused[path] = reason
        return self.files.pop(path, None) is not None or before != reason

    def forget(self, path: str) -> bool:
        """Whether anything was known."""
        file, reason = self.files.pop(path, None), self.refused.pop(path, None)
        return file is not None or reason is not None

    def forget_below(self, prefix: str, folder: KnownFolder) -> bool:
        """Whether anything was known. By the folder's own names: thousands of folders may ask in one pass."""
        was_known = False
        waiting = [(prefix, folder)]
        while waiting:
            above, each = waiting.pop()
            for name in each.stamps:
                was_known |= self.forget(above + name)
            waiting += [(f"{above}{name}/", below) for name, below in each.folders.items()]
        return was_known

    def folder_of(self, path: str) -> tuple[KnownFolder, str]:
        """The folder that a path is in, made known where it was not, and the path's last name."""
        *folders, name = path[1:].split("/")
        folder = self.root
        for each in folders:
            below = folder.folders.get(each)
            if below is None:
                below = folder.folders[each] = KnownFolder()
            folder = below
        return folder, name


@dataclass(slots=True)
class _Looked:
    """A folder that is being looked through. Its own entries have `depth` segments."""

    fd: int
    known: KnownFolder
    prefix: str
    depth: int


class Walk:
    """One pass: brings what is known up to the disk."""

    def __init__(
        self, known: Known, root: int, *, max_file_bytes: int, max_files: int, stamps_tell: bool, deep: bool
    ) -> None:
        self._known, self._root = known, root
        self._max_file_bytes, self._left, self._stamps_tell = max_file_bytes, max_files, stamps_tell
        self._began_ns = time.time_ns()
        self._device = os.fstat(root).st_dev
        self._flushed = 0
        self._kept_bytes = 0
        self.changed = False
        self.complete = True
        self.unreadable: list[str] = []
        self.contents: dict[str, bytes] = {}
        if deep:
            known.root.distrust()
            self._flush_all()

    def run(self) -> None:
        """Walk the whole mount."""
        self._enter(".", self._root, _Looked(-1, self._known.root, "/", 1))

    def _enter(self, name: str, parent: int, here: _Looked) -> None:
        """Look through a folder by its name in its parent."""
        try:
            # The root, too, anew: a descriptor's place in its listing is shared by all who use it.
            here.fd = open_folder(name, dir_fd=parent)
        except OSError:
            self._cannot_read(here)
            return
        try:
            self._look(here)
        except OSError:
            self._cannot_read(here)
        finally:
            os.close(here.fd)

    def _cannot_read(self, here: _Looked) -> None:
        """The names are kept: once it can be read again, what its listing lacks is asked for."""
        here.known.distrust()
        self.unreadable.append(here.prefix)
        self.changed |= self._known.forget_below(here.prefix, here.known)

    def _look(self, here: _Looked) -> None:
        stamps = here.known.stamps
        same = count = 0
        news: list[tuple[str, os.stat_result]] = []
        with os.scandir(here.fd) as entries:
            for entry in itertools.islice(entries, self._left):
                count += 1
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                # `stamp(status)`, without the call: this is what a scan of unchanged files consists of.
                now = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                if stamps.get(entry.name) == now:
                    same += 1
                else:
                    news.append((entry.name, status))
            self._left -= count
            self.complete = self.complete and (self._left > 0 or next(entries, None) is None)
        if news or same != len(stamps) or here.known.folders:
            self._look_at_news(here, news, same)

    def _look_at_news(self, here: _Looked, news: list[tuple[str, os.stat_result]], same: int) -> None:
        known, folders = here.known, dict[str, int]()
        for name, status in news:
            if not stat.S_ISDIR(status.st_mode):
                self._look_at(here, name, status)
            elif name in known.folders or not self._refuse_folder(here, name, status):
                folders[name] = status.st_dev
                continue
            same += name in known.stamps
        if not self.complete:
            return
        if same != len(known.stamps):
            self._forget_gone(here, folders)
        if not known.folders.keys() <= folders.keys():
            self._forget_gone_folders(here, folders)
        for name, device in folders.items():
            if self.complete:
                self._look_below(here, name, device)

    # -- folders ---------------------------------------------------------------------------------------

    def _refuse_folder(self, here: _Looked, name: str, status: os.stat_result) -> bool:
        """Whether nothing below it can be a memory: then that is known of it."""
        path = here.prefix + name
        reason = _why_illegal(path)
        if reason is None and here.depth == paths.MAX_SEGMENTS:
            reason = f"what lies in it would have more than {paths.MAX_SEGMENTS} segments"
        if reason is not None:
            here.known.stamps[name] = stamp(status)
            self.changed |= self._known.set_refused(path, reason)
        return reason is not None

    def _look_below(self, here: _Looked, name: str, device: int) -> None:
        prefix = f"{here.prefix}{name}/"
        below = _Looked(-1, here.known.folders.setdefault(name, KnownFolder()), prefix, here.depth + 1)
        if device == self._device:
            self._enter(name, here.fd, below)
        else:  # another file system is mounted there
            self._cannot_read(below)

    def _forget_gone_folders(self, here: _Looked, folders: Container[str]) -> None:
        missing = [name for name in here.known.folders if name not in folders]
        for name in [name for name in missing if _kind(name, here.fd) != stat.S_IFDIR]:
            gone = here.known.folders.pop(name)
            self.changed |= self._known.forget_below(f"{here.prefix}{name}/", gone)

    # -- files -----------------------------------------------------------------------------------------

    def _forget_gone(self, here: _Looked, folders: Container[str]) -> None:
        """What a listing lacks may have been renamed while it was made: each name is asked for."""
        listed = set(os.listdir(here.fd))
        missing = [name for name in here.known.stamps if name in folders or name not in listed]
        for name in [name for name in missing if name in folders or _kind(name, here.fd) is None]:
            del here.known.stamps[name]
            self.changed |= self._known.forget(here.prefix + name)

    def _look_at(self, here: _Looked, name: str, status: os.stat_result) -> None:
        path, stamps = here.prefix + name, here.known.stamps
        is_known = path in self._known.files  # then its path is legal
        reason = (None if is_known else _why_illegal(path)) or why_no_file(status, self._max_file_bytes)
        if reason is not None:
            stamps[name] = stamp(status)
            self.changed |= self._known.set_refused(path, reason)
            return
        try:
            read = read_file(name, dir_fd=here.fd, limit_bytes=self._max_file_bytes, flush=self._flush)
        except Unreadable as why:
            if why.reason != GONE or is_known:
                stamps[name] = None
                self.changed |= self._known.set_refused(path, why.reason)
            return
        stamps[name] = read.stamp if self._is_settled(read.status) else None
        self.changed |= self._take(path, read)

    def _take(self, path: str, read: FileRead) -> bool:
        known = self._known.files.get(path)
        if known is not None and known.sha256 == read.sha256:
            return False
        if not read.content.isascii():
            try:
                content.encode(read.content, self._max_file_bytes)
            except InvalidContentError as error:
                return self._known.set_refused(path, f"it is not text: {error.reason}")
        new = self._known.set_file(path, LocalFile(read.sha256, len(read.content)))
        if new and self._kept_bytes + len(read.content) <= KEPT_BYTES:
            self._kept_bytes += len(read.content)
            self.contents[path] = read.content
        return new

    def _is_settled(self, status: os.stat_result) -> bool:
        return self._stamps_tell and self._began_ns - status.st_ctime_ns > SETTLED_NS

    def _flush(self, fd: int, status: os.stat_result) -> None:
        """Only before a reading that its stamp will stand for: any other file is read anew by the next pass."""
        if self._flushed > _FLUSHED_ONE_BY_ONE or not self._is_settled(status) or not may_be_held(fd):
            return
        self._flushed += 1
        if self._flushed <= _FLUSHED_ONE_BY_ONE:
            with contextlib.suppress(OSError):
                write_back(fd)
        else:
            write_all_back(self._root)

    def _flush_all(self) -> None:
        if self._stamps_tell:
            write_all_back(self._root)
            self._flushed = _FLUSHED_ONE_BY_ONE + 1


def _why_illegal(path: str) -> str | None:
    if path == MARKER_PATH:
        return "it is the SDK's own marker, which is never saved"
    try:
        paths.check_path(path)
    except InvalidPathError as error:
        return "its name is not UTF-8" if any("\ud800" <= sign <= "\udfff" for sign in path) else error.reason
    return None


def _kind(name: str, fd: int) -> int | None:
    """What an entry is, by S_IFMT; None where there is none.

    Raises:
        OSError: the folder was closed to us meanwhile: then nothing in it counts as gone.
    """
    try:
        return stat.S_IFMT(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None


def shown(refused: Iterable[tuple[str, str]], files: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The refused paths as they can be printed: what a path may not hold is spelt with escapes, none is spelt twice."""
    taken = set(files)
    for path, reason in refused:
        spelling = "".join(sign if paths.is_legal_character(sign) else _escaped(sign) for sign in path)
        while spelling in taken:
            spelling += "'"
        taken.add(spelling)
        yield spelling, reason


def _escaped(sign: str) -> str:
    code = ord(sign)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00  # a byte that is not UTF-8
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
