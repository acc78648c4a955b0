"""A text's lines, and which of them changed. Lines end at `\\n` alone, which they keep."""

from __future__ import annotations

import io

from memkernel.textdiff.align import changes
from memkernel.textdiff.runs import Block


def lines_of(text: str) -> list[str]:
    r"""The lines of a text; the last one has no `\n` where the text has none."""
    return list(io.StringIO(text, newline="\n"))  # str.splitlines would also split at \r, \f and U+2028


def line_changes(old: list[str], new: list[str]) -> list[Block]:
    """The changes between two lists of lines, in order; at least one equal line lies between two of them."""
    return changes(old, new, _is_blank)


def _is_blank(line: str) -> bool:
    return not line or line.isspace()
