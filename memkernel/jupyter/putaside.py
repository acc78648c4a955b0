"""What a sandbox saved, and the texts that it could not save, each with its difference from the store's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memkernel.handle.diff import Diff
from memkernel.handle.records import Records
from memkernel.models import MemoryVersion
from memkernel.render import diff_html, diff_text, html_of, moment_text, remark_html

if TYPE_CHECKING:
    from memkernel.handle.rejected import RejectedChange

SHOWN: Final = 3
"""So many texts that were put aside are compared at once; each costs two queries and much room."""

NAMED: Final = 10

_NOTHING: Final = "Nothing was saved yet."
_WAY_OUT: Final = (
    "`%sandbox resolve PATH mine` saves yours over the store's, `both` saves it beside it, `theirs` discards it."
)


@dataclass(frozen=True, slots=True)
class PutAside:
    """A text that could not be saved, and how it differs from what the store holds."""

    change: RejectedChange
    diff: Diff

    def __repr__(self) -> str:
        where = f"{self.change.store}:{self.change.path}"
        return diff_text(self.diff.text_diff, self._in_the_store, "yours, put aside", [f"{where}: {self._note}"])

    def _repr_html_(self) -> str:
        return self.html

    @property
    def html(self) -> str:
        """A static copy of the difference."""
        change = f"{self._in_the_store} → yours, put aside"
        return diff_html(self.diff.text_diff, f"{self.change.store}:{self.change.path}", change, [self._note])

    @property
    def _in_the_store(self) -> str:
        return f"@{self.diff.old.ordinal} in the store" if self.diff.old else "nothing in the store"

    @property
    def _note(self) -> str:
        what = "its deletion was" if self.change.content is None else "its text was"
        return f"{what} put aside {moment_text(self.change.at)} UTC: {self.change.reason}"


@dataclass(frozen=True, slots=True)
class Changes:
    """What a sandbox has saved since it was started, newest first, and what it could not save.

    `put_aside` has the newest texts that could not be saved with their differences, `others` the paths of the rest.
    """

    saved: Records[MemoryVersion]
    put_aside: tuple[PutAside, ...]
    others: tuple[str, ...] = ()

    def __repr__(self) -> str:
        saved = repr(self.saved) if self.saved else _NOTHING
        return "\n\n".join([saved, *map(repr, self.put_aside), *self._remarks])

    def _repr_html_(self) -> str:
        saved = html_of(self.saved) if self.saved else remark_html(_NOTHING)
        return "".join([saved, *(each.html for each in self.put_aside), *map(remark_html, self._remarks)])

    @property
    def _remarks(self) -> list[str]:
        named = ", ".join(self.others[:NAMED]) + (", …" if len(self.others) > NAMED else "")
        more = f"{len(self.others):,} more put aside: {named}. `%sandbox changes PATH` shows one."
        return [*([more] if self.others else []), *([_WAY_OUT] if self.put_aside else [])]
