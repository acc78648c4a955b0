"""Where the agent's file tools may work: paths as a model writes them, and the real ones behind them.

A path is canonicalised before it is judged, and the canonical one is what is then worked on: a link that leads out of
the roots neither passes nor is followed later. The words are those of CONTRACT.md E.
"""

from __future__ import annotations

import errno
import os
import posixpath
from pathlib import Path
from stat import S_ISLNK
from typing import Any, Dict, Iterable, List, Tuple

_MOST_HOPS = 40
_MISSING = (errno.ENOENT, errno.ENOTDIR)

_REASONS = (
    (FileNotFoundError, "no such file or directory"),
    (NotADirectoryError, "not a directory"),
    (IsADirectoryError, "is a directory"),
    (PermissionError, "permission denied"),
    (FileExistsError, "file already exists"),
)


class ToolError(Exception):
    """What a model is told of a call that failed."""


def reason(error: OSError) -> str:
    """An error of the system in the same words everywhere."""
    for kind, words in _REASONS:
        if isinstance(error, kind):
            return words
    if error.errno == errno.ELOOP:
        return "too many levels of symbolic links"
    return (error.strerror or "i/o error").lower()


def file_error(tool: str, path: str, error: OSError) -> ToolError:
    """`{tool}: {path}: {reason}`."""
    return ToolError("%s: %s: %s" % (tool, path, reason(error)))


class Places:
    """The working directory, the roots beside it, and those of them that are not to be written to.

    All as the sandbox calls them. `folders` says where those really are that are elsewhere (a sandbox without
    namespaces): a path is looked for there, and shown as the sandbox calls it.
    """

    def __init__(self, asked: Dict[str, Any]) -> None:
        self._folders = _longest_first(asked["folders"].items())
        self._called = _longest_first((real, path) for path, real in asked["folders"].items())
        self._workdir = str(asked["workdir"])
        self.workdir = self._root(asked["workdir"])
        self._roots = [self._root(path) for path in asked["roots"]]
        self._read_only = [(path, self._root(path)) for path in asked["read_only"]]

    def _root(self, path: str) -> Path:
        return Path(os.path.realpath(_moved(path, self._folders)))

    def shown(self, path: object) -> str:
        """A real path as the sandbox calls it; bytes that are no text are replaced."""
        return os.fsencode(_moved(str(path), self._called)).decode("utf-8", "replace")

    def resolve(self, tool: str, path: str) -> Path:
        """The canonical, real path that a model means.

        Raises:
            ToolError: it is outside, or cannot be resolved.
        """
        base = self._workdir if self._folders else str(self.workdir)
        try:
            full = canonical(Path(_moved(_tidy(posixpath.join(base, path)), self._folders)))
        except OSError as error:
            raise ToolError("%s: path %r: %s" % (tool, path, reason(error))) from error
        except ValueError as error:
            raise ToolError("%s: %s" % (tool, error)) from error
        if any(within(full, root) for root in [self.workdir, *self._roots]):
            return full
        more = " and its other permitted directories" if self._roots else ""
        raise ToolError("%s: path %r is outside the session's working directory%s" % (tool, path, more))

    def refuse_read_only(self, tool: str, target: Path, path: str) -> None:
        """Raise ToolError where the target is not to be written to."""
        for called, root in self._read_only:
            if within(target, root):
                raise ToolError("%s: %s is inside read-only directory %s" % (tool, path, called))

    def reaches(self, program: str) -> bool:
        """Whether a program lies where the tools write: it is not one to trust."""
        real = Path(os.path.realpath(program))
        return any(within(real, root) for root in [self.workdir, *self._roots])


def within(path: Path, root: Path) -> bool:
    """Whether a path is the root or below it; both are canonical."""
    return path.parts[: len(root.parts)] == root.parts


def canonical(path: Path) -> Path:
    """The path without `.` and `..` (lexically) and without links; what does not exist at its end stays as it is.

    Raises:
        OSError: a loop, a part that cannot be entered.
    """
    prefix = Path(os.path.normpath(str(path)))
    missing: List[str] = []
    hops = 0
    while True:
        try:
            return prefix.resolve(strict=True).joinpath(*reversed(missing))
        except RuntimeError:  # how Python before 3.13 tells of a loop
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        except OSError as error:
            if error.errno not in _MISSING:
                raise
            unresolved = error
        try:
            is_link = S_ISLNK(os.lstat(str(prefix)).st_mode)
        except OSError as error:
            if error.errno not in _MISSING or prefix.parent == prefix:
                raise
            missing.append(prefix.name)
            prefix = prefix.parent
            continue
        if not is_link:
            raise unresolved
        hops += 1
        if hops > _MOST_HOPS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = os.path.join(str(prefix.parent.resolve(strict=True)), os.readlink(str(prefix)), *reversed(missing))
        prefix = Path(os.path.normpath(target))
        missing.clear()


def _tidy(path: str) -> str:
    """An absolute path without `.`, `..` and doubled slashes, which may stand at the beginning, too."""
    return "/" + posixpath.normpath(path).lstrip("/")


def _longest_first(pairs: Iterable[Tuple[str, str]]) -> List[Tuple[str, str]]:
    return sorted(pairs, key=lambda pair: -len(pair[0]))


def _moved(path: str, folders: List[Tuple[str, str]]) -> str:
    """The path with another beginning, where it begins with one of the folders."""
    for folder, other in folders:
        if path == folder or path.startswith(folder + "/"):
            return other + path[len(folder) :]
    return path
