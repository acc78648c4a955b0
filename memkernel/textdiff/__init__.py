"""Two texts -> hunks of lines and words: one differ for plain text, HTML and the live view.

How lines are matched: `align`. Which words of a changed line differ: `words`. The records, and the
unified diff: `hunks`.
"""

from __future__ import annotations

from memkernel.textdiff.hunks import Fold, Hunk, Line, Row, TextDiff, diff
from memkernel.textdiff.words import Span

__all__ = ["Fold", "Hunk", "Line", "Row", "Span", "TextDiff", "diff"]
