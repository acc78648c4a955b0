"""`Records`: a list that is shown as a table and can become a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, SupportsIndex, TypeVar, overload

from memkernel.render import records_html, records_text, remark_html

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


class Records(list[T], Generic[T]):
    """A list of records. It holds all of them and shows the first 60.

    Args:
        records: the records.
        kind: their class or classes, for the columns of an empty list.
        total: how many there are, where these are not all.
        empty: what to say where there is none.
    """

    rows_shown: ClassVar[int] = 60

    def __init__(
        self,
        records: Iterable[T] = (),
        *,
        kind: type | tuple[type, ...] | None = None,
        total: int | None = None,
        empty: str = "",
    ) -> None:
        super().__init__(records)
        self.kind = kind
        self.total = total
        self.empty = empty

    def first(self, count: int | None) -> Records[T]:
        """The first records; `total` tells of the others. None is all of them."""
        return self if count is None else Records(self[:count], kind=self.kind, total=self._total)

    def df(self) -> pd.DataFrame:
        """A DataFrame with a row a record and a column a field."""
        from memkernel.analytics.frames import frame

        return frame(self, self.kind)

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> T: ...
    @overload
    def __getitem__(self, index: slice, /) -> Records[T]: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> T | Records[T]:
        if isinstance(index, slice):
            return Records(super().__getitem__(index), kind=self.kind)
        return super().__getitem__(index)

    @property
    def _total(self) -> int:
        return len(self) if self.total is None else max(self.total, len(self))

    def __repr__(self) -> str:
        if self.empty and not self:
            return self.empty
        return records_text(self._rows(), self._total)

    def html(self, title: str = "") -> str:
        """The table as HTML, perhaps under a title."""
        if self.empty and not self:
            return remark_html(f"{title}. {self.empty}" if title else self.empty)
        return records_html(self._rows(), self._total, title)

    def _rows(self) -> Sequence[object]:
        """What is shown: the first records, or what tells more of them."""
        return self[: self.rows_shown]

    def _repr_html_(self) -> str:
        return self.html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # IPython has a printer of its own for lists; this one comes before it. Inside other things a table is too much.
        printer.text(repr(self) if len(printer.stack) <= 1 else f"<{len(self):,} records>")
