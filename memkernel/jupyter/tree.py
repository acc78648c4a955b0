"""`%memory tree`: everything below a path, drawn with lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import TypeAlias

Branches: TypeAlias = "dict[str, Branches]"


class Tree:
    """Paths as a tree. Its first lines are shown; `paths` has all of them."""

    def __init__(self, root: str, paths: Iterable[str], *, lines_shown: int = 60) -> None:
        self.root = root
        self.paths = list(paths)
        self._lines_shown = lines_shown

    def __str__(self) -> str:
        lines = [self.root, *_lines(_branches(self.root.rstrip("/"), self.paths), "")]
        left_out = len(lines) - self._lines_shown
        more = [f"… {left_out:,} more lines"] if left_out > 0 else []
        return "\n".join([*lines[: self._lines_shown], *more])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _branches(root: str, paths: Iterable[str]) -> Branches:
    trunk: Branches = {}
    for path in paths:
        branch = trunk
        for segment in path.removeprefix(root).split("/")[1:]:
            branch = branch.setdefault(segment, {})
    return trunk


def _lines(branches: Branches, indent: str) -> Iterator[str]:
    for number, (name, below) in enumerate(branches.items(), 1):
        last = number == len(branches)
        yield f"{indent}{'└── ' if last else '├── '}{name}{'/' if below else ''}"
        yield from _lines(below, indent + ("    " if last else "│   "))
