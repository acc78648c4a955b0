"""Where the stand-in keeps what it is told: behind the memory tool, or in a store's folder in a sandbox. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Final, TypeAlias

from memkernel.agent.rules_play import Call, Result

Looking: TypeAlias = Generator[Call, Result, list[str]]
Reading: TypeAlias = Generator[Call, Result, str]

_MOST_FILES: Final = 40
_ROOT: Final = "/memories"
_FIRST: Final = "I look into my memory first."


class Files(ABC):
    """The files of a memory. What was listed once is remembered."""

    root: str

    def __init__(self) -> None:
        self._listed: list[str] | None = None

    def path_of(self, name: str) -> str:
        """A file of the memory by its name."""
        return f"{self.root}/{name.lstrip('/')}"

    def look(self) -> Looking:
        """The paths of all files; those that end with a slash are folders that were not looked into."""
        if self._listed is None:
            self._listed = yield from self._list()
        return self._listed

    def read_all(self) -> Generator[Call, Result, dict[str, str]]:
        """Path -> text, of as many files as a demonstration needs."""
        paths = yield from self.look()
        texts: dict[str, str] = {}
        for path in paths:  # grows while it is walked, where a folder is opened
            if path.endswith("/"):
                paths += [found for found in (yield from self._open(path)) if found not in paths]
            elif len(texts) < _MOST_FILES:
                texts[path] = yield from self.read(path)
        return texts

    def made(self, path: str) -> None:
        """A file is there now."""
        self._listed = [*(self._listed or []), path]

    def gone(self, path: str) -> None:
        """A file is there no longer."""
        self._listed = [listed for listed in self._listed or [] if listed != path]

    @abstractmethod
    def _list(self) -> Looking: ...

    @abstractmethod
    def _open(self, folder: str) -> Looking:
        """What is in a folder that is only listed so far."""

    @abstractmethod
    def read(self, path: str) -> Reading:
        """The file's text; "" where it cannot be read."""

    @abstractmethod
    def create(self, path: str, text: str, says: str = "") -> Call:
        """A new file."""

    @abstractmethod
    def append(self, path: str, text: str, line: str) -> Call:
        """A line at the end of a file that holds `text`."""

    @abstractmethod
    def replace(self, path: str, old: str, new: str) -> Call:
        """Another text in the place of one that is there once."""

    @abstractmethod
    def delete(self, path: str) -> Call:
        """The file goes."""


class MemoryFiles(Files):
    """The files behind the memory tool."""

    root = _ROOT

    def _list(self) -> Looking:
        return _listed((yield Call({"command": "view", "path": _ROOT}, _FIRST)))

    def _open(self, folder: str) -> Looking:
        if folder.count("/") <= 3:  # a folder of the first level is listed with its parent
            return []
        return _listed((yield Call({"command": "view", "path": folder.rstrip("/")})))

    def read(self, path: str) -> Reading:
        shown = yield Call({"command": "view", "path": path})
        # Under a heading, the tool numbers every line: digits, a tab, the line.
        return "" if shown.is_error else "\n".join(line.partition("\t")[2] for line in shown.text.split("\n")[1:])

    def create(self, path: str, text: str, says: str = "") -> Call:
        return Call({"command": "create", "path": path, "file_text": text}, says)

    def append(self, path: str, text: str, line: str) -> Call:
        at = len(lines(text))
        return Call({"command": "insert", "path": path, "insert_line": at, "insert_text": f"{line}\n"})

    def replace(self, path: str, old: str, new: str) -> Call:
        return Call({"command": "str_replace", "path": path, "old_str": old, "new_str": new})

    def delete(self, path: str) -> Call:
        return Call({"command": "delete", "path": path})


class MountedFiles(Files):
    """A store's folder in a sandbox."""

    def __init__(self, mount: str) -> None:
        super().__init__()
        self.root = mount

    def _list(self) -> Looking:
        found = yield Call({"pattern": "**/*.md", "path": self.root}, _FIRST, tool="glob")
        paths = [] if found.is_error else found.text.split("\n")
        return sorted(path for path in paths if path.startswith(f"{self.root}/"))

    def _open(self, folder: str) -> Looking:
        yield from ()
        return []

    def read(self, path: str) -> Reading:
        shown = yield Call({"file_path": path}, tool="read")
        return "" if shown.is_error else shown.text

    def create(self, path: str, text: str, says: str = "") -> Call:
        return Call({"file_path": path, "content": text}, says, tool="write")

    def append(self, path: str, text: str, line: str) -> Call:
        whole = text if text.endswith("\n") or not text else f"{text}\n"
        return Call({"file_path": path, "content": f"{whole}{line}\n"}, tool="write")

    def replace(self, path: str, old: str, new: str) -> Call:
        return Call({"file_path": path, "old_string": old, "new_string": new}, tool="edit")

    def delete(self, path: str) -> Call:
        return Call({"command": f"rm {_quoted(path)}"}, tool="bash")


def lines(text: str) -> list[str]:
    """The lines of a text; none of an empty one."""
    return text.removesuffix("\n").split("\n") if text else []


def _listed(listing: Result) -> list[str]:
    if listing.is_error:
        return []
    paths = [line.split("\t", 1)[1] for line in listing.text.split("\n") if "\t" in line]
    return [path for path in paths[1:] if path.startswith(f"{_ROOT}/")]


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"
