"""`Browse`: a store, or all stores, to look at: a table in a terminal, the StoreBrowser in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from memkernel import present
from memkernel.handle.records import Records
from memkernel.models import Memory, MemoryPrefix, MemoryStore
from memkernel.render import counted, one_line

if TYPE_CHECKING:
    import pandas as pd

    from memkernel.handle.connection import Connection
    from memkernel.handle.store import Store

_NO_STORE = "There is no memory store yet: `%memory use NAME --create` makes one."
_NO_MEMORY = "There is no memory yet: `%%memory put PATH` writes one."


class Browse:
    """What is looked at, with its records as of now: those of a store's memories, or the stores.

    Attributes:
        connection: the database.
        store: the store; None where one is still to be chosen.
        prefix: the directory of it that is looked at.
        selected: the path of the memory that is looked at first; `""` for none.
        readonly: nothing is to be changed from there.
        records: the memories below the prefix without contents, or the stores.
    """

    def __init__(
        self, connection: Connection, store: Store | None = None, path: str = "/", *, readonly: bool = False
    ) -> None:
        """Look at a path of a store, or at all stores.

        Raises:
            MemoryNotFoundError: nothing is at or below the path.
        """
        self.connection = connection
        self.store = store
        self.readonly = readonly
        self.records: Records[MemoryStore] | Records[Memory | MemoryPrefix]
        self.prefix, self.selected = "/", ""
        if store is None:
            self.records = stores_of(connection)
            return
        self.records = memories_of(store, path)
        if [each.path for each in self.records] == [path]:
            self.selected, self.records = path, memories_of(store)
        else:
            self.prefix = path if path.endswith("/") else f"{path}/"

    def show(self) -> object:
        """Show it: interactively where the notebook can, as text elsewhere.

        Returns:
            The widget, None where there is none.
        """
        return present.show(self)

    def df(self) -> pd.DataFrame:
        """A DataFrame with a row a memory, or a store."""
        return self.records.df()

    def __iter__(self) -> Iterator[MemoryStore | Memory | MemoryPrefix]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        return browsed_text(self.store, self.records)

    def _repr_html_(self) -> str:
        return browsed_html(self.store, self.records)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def stores_of(connection: Connection) -> Records[MemoryStore]:
    """The stores to choose from, newest first."""
    return Records(connection.stores(), kind=MemoryStore, empty=_NO_STORE)


def memories_of(store: Store, path: str = "/") -> Records[Memory | MemoryPrefix]:
    """All memories at or below a path, without contents.

    Raises:
        MemoryNotFoundError: there is none; the root may be empty.
    """
    return Records(store.ls(path, depth=0), kind=Memory, empty=_NO_MEMORY)


def browsed_text(store: Store | None, records: Records[Any]) -> str:
    """What is looked at, as a table under its name."""
    return f"{_heading(store, records)}\n{records!r}"


def browsed_html(store: Store | None, records: Records[Any]) -> str:
    """The same as HTML."""
    return records.html(_heading(store, records))


def _heading(store: Store | None, records: Records[Any]) -> str:
    """`Team notes: 4 memories`"""
    if store is None:
        return counted(len(records), "memory store")
    return one_line(f"{store.name}: {len(records):,} {'memory' if len(records) == 1 else 'memories'}")
