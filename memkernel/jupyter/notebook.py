"""What a kernel remembers between commands: its connection, the store in use, the heads it has shown."""

from __future__ import annotations

import threading
from argparse import Namespace
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from memkernel import cluster, config
from memkernel.errors import DatabaseUnavailableError, MemkernelError, NoStoreInUseError, StoreNotFoundError
from memkernel.handle.store import Store
from memkernel.jupyter.agents import Agents
from memkernel.jupyter.arguments import parse_address
from memkernel.jupyter.heads import HeadsSeen
from memkernel.jupyter.preferences import Preferences
from memkernel.jupyter.recollection import Recollection
from memkernel.jupyter.sandboxes import Sandboxes
from memkernel.jupyter.shell import Shell
from memkernel.jupyter.widgets.outputs import Outputs

if TYPE_CHECKING:
    from memkernel.api.server import Serving
    from memkernel.handle.connection import Connection


@dataclass(frozen=True, slots=True)
class Place:
    """A path in a store, perhaps at a version."""

    store: Store
    path: str
    version: str | None


class Notebook:
    """The state behind the magics of one kernel.

    Attributes:
        shell: IPython's shell.
        preferences: what `%memory config` sets.
        outputs: where widgets are shown.
        known: names for completion; a command that ran makes them old.
        heads: which heads the person has seen.
        agents: whose conversations go on in this kernel.
        sandboxes: those that run. They keep their stores' own connection, also where the notebook takes another.
        serving: what `%memory serve` has started; it keeps its database, too.
    """

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.preferences = Preferences()
        self.outputs = Outputs(shell, self.preferences)
        self.known = Recollection[str]()
        self.heads = HeadsSeen()
        self.sandboxes = Sandboxes()
        self.agents = Agents()
        self.serving: Serving | None = None
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._begun_with = ""
        self._warming: threading.Thread | None = None
        self._store: Store | None = None
        self._lost: dict[str, str] = {}

    # -- the connection ----------------------------------------------------------------------------

    @property
    def connection(self) -> Connection:
        """The connection of this kernel, made where there is none."""
        with self._lock:
            if self._connection is None:
                from memkernel.handle.connection import connect

                self._connection = connect()
            return self._connection

    def begin(self) -> str:
        """Which PostgreSQL is used, in one line that is true: it runs.

        psycopg takes longer to import than all of IPython: with the embedded server, whose start needs none of it,
        the connection is made while the person goes on.

        Raises:
            MemkernelError: it cannot be reached, or there is none.
        """
        settings = config.load()
        self.preferences.begin_with(settings)
        chosen = cluster.choose(None, settings)
        if chosen.line != self._begun_with:
            self.close()
        self._begun_with = chosen.line
        if self._connection is not None or chosen.cluster is None:
            self.connection.database.open()
            return self.connection.line
        chosen.cluster.ensure()
        self._warming = threading.Thread(
            target=self._warm_up, args=[chosen.cluster], name="memkernel-connect", daemon=True
        )
        self._warming.start()
        return chosen.line

    def _warm_up(self, server: cluster.EmbeddedCluster) -> None:
        with suppress(MemkernelError):  # the next command tries again, and tells
            self.connection.database.open()
        server.release()  # by now the connection keeps it

    @property
    def connected(self) -> Connection | None:
        """The connection, if there is one."""
        return self._connection

    def connect(self, dsn: str | None) -> Connection:
        """Connect anew and close the connection of before; the store in use stays so if it is there."""
        from memkernel.handle.connection import connect

        made, in_use = connect(dsn), self._store
        self._leave()
        self.close()
        self._connection = made
        if in_use is not None:
            with suppress(StoreNotFoundError):  # another database has other stores
                self._store = made.store(in_use.id)
        return made

    def _leave(self) -> None:
        try:
            self.tell_settled()
        except DatabaseUnavailableError:
            for change in self._lost.values():
                print(f"Unknown whether it was saved: {change}")

    def rest(self) -> None:
        """Let the server go, and remember everything: the connection opens again with its next use."""
        if self._warming is not None:
            self._warming.join()
        if self._connection is not None:
            self._connection.close()

    def close(self) -> None:
        """Forget the connection and all that belongs to it."""
        self.rest()
        with self._lock:
            self._connection = None
        self._store = None
        self._lost.clear()
        self.agents.clear()
        self.heads.clear()

    def lost(self, command: str, error: DatabaseUnavailableError) -> None:
        """Remember a command whose outcome is unknown, to tell it when it is known."""
        if error.version_id:
            self._lost[error.version_id] = command

    def tell_settled(self) -> None:
        """Say what became of changes whose outcome was unknown when the server was lost (fault 30).

        Raises:
            DatabaseUnavailableError: it is not back yet.
        """
        if self._connection is None or not self._connection.database.unsettled():
            return
        for settled in self._connection.database.settle():
            change = self._lost.pop(settled.version_id, settled.version_id)
            print(f"{'Saved after all' if settled.saved else 'Not saved'}: {change}")

    # -- stores and paths --------------------------------------------------------------------------

    @property
    def store_in_use(self) -> Store | None:
        """The store of paths that name none."""
        return self._store

    def use(self, ref: str, *, create: bool = False) -> Store:
        """Make a store the one in use; `create` makes one where none has this name."""
        self._store = self.connection.store(ref, create=create)
        return self._store

    def store(self, ref: str | None = None) -> Store:
        """The store of this id, name or slug; without one the store in use.

        Raises:
            NoStoreInUseError: none is named and none is in use.
        """
        if ref is not None:
            return self.connection.store(ref)
        if self._store is None:
            raise NoStoreInUseError
        return self._store

    def place(self, text: str, args: Namespace) -> Place:
        """The place that a PATH means; its version may be None.

        Raises:
            UsageError: the path and `--store` name two stores.
        """
        address = parse_address(text)
        if address.store is not None and args.store is not None and address.store != args.store:
            raise UsageError(f"{text} names the store {address.store}, --store names {args.store}\nName one of them.")
        store = self.store(address.store or args.store)
        if address.path == "/" and address.version is not None:  # a version's id alone, or `/@1`, which names nothing
            version = store.version(None, address.version)
            return Place(store, version.path or "/", version.id)
        return Place(store, address.path, address.version)

    def place_now(self, text: str, args: Namespace) -> Place:
        """The place that a PATH means, where a version makes no sense.

        Raises:
            UsageError: the path has a version other than the head.
        """
        place = self.place(text, args)
        if place.version not in (None, "head"):
            raise UsageError(
                f"{text} names a version, and versions never change\n"
                f"The memory itself is {place.path}; one that is called {text} is written {text}@head."
            )
        return place

    def dropped(self, store: Store) -> None:
        """The store is gone: if it was in use, none is any longer."""
        if self._store is not None and self._store.id == store.id:
            self._store = None

    # -- variables ----------------------------------------------------------------------------------

    def value_of(self, name: str) -> str | bytes:
        """The text in a variable of the notebook.

        Raises:
            UsageError: there is no such variable, or it holds no text.
        """
        value = self.variable(name)
        if not isinstance(value, str | bytes):
            raise UsageError(f"{name} is no text but {type(value).__name__}\nIt must be str or bytes.")
        return value

    def variable(self, name: str) -> Any:
        """What is in a variable of the notebook.

        Raises:
            UsageError: there is no such variable.
        """
        if name not in self.shell.user_ns:
            raise UsageError(f"there is no variable {name}\nAssign it first.")
        return self.shell.user_ns[name]
