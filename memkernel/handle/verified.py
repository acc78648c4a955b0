"""`Problems`: what `store.verify()` found, a line each."""

from __future__ import annotations

from memkernel.handle.records import Records
from memkernel.models import StoreProblem, Verified
from memkernel.render import html_of, text_of


class Problems(Records[StoreProblem]):
    """What is wrong with a store; empty where it is whole. `checked` has how much was looked at."""

    def __init__(self, checked: Verified) -> None:
        super().__init__(checked.problems, kind=StoreProblem)
        self.checked = checked

    def __repr__(self) -> str:
        return text_of(self.checked)

    def html(self, title: str = "") -> str:
        """The same as HTML."""
        return html_of(self.checked)
