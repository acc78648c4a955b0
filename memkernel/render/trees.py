"""Paths as a tree, drawn with lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from memkernel.render.marks import html_line, one_line
from memkernel.render.style import first_lines, fitting, framed

LINE_CHARACTERS: Final = 2_000

Branches: TypeAlias = "dict[str, Branches]"


def tree_text(root: str, paths: Iterable[str]) -> str:
    """Everything below `root`, at most 60 lines.

    Args:
        root: a directory, `/` or with or without its last slash.
        paths: memory paths below it, in any order.
    """
    return "\n".join(one_line(line) for line in first_lines(_tree(root, paths)))


def tree_html(root: str, paths: Iterable[str]) -> str:
    """The same as HTML."""
    lines = "\n".join(fitting(html_line(line, LINE_CHARACTERS) for line in first_lines(_tree(root, paths))))
    return framed(f"<pre><span>{lines}</span></pre>")


def _tree(root: str, paths: Iterable[str]) -> list[str]:
    trunk: Branches = {}
    for path in sorted(paths):
        branch = trunk
        for segment in path.removeprefix(root.rstrip("/")).split("/")[1:]:
            branch = branch.setdefault(segment, {})
    return [root, *_lines(trunk, "")]


def _lines(branches: Branches, indent: str) -> Iterator[str]:
    for number, (name, below) in enumerate(branches.items(), 1):
        is_last = number == len(branches)
        yield f"{indent}{'└── ' if is_last else '├── '}{name}{'/' if below else ''}"
        yield from _lines(below, indent + ("    " if is_last else "│   "))
