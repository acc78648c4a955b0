"""The database and its memory stores: connect, status, stores, create, use, archive, drop."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Final

from memkernel.handle.records import Records
from memkernel.handle.store import Store
from memkernel.handle.verified import Problems
from memkernel.jupyter.arguments import Parser, asks, gives_result, takes_limit
from memkernel.jupyter.command import Command
from memkernel.jupyter.confirm import confirm
from memkernel.jupyter.done import Done
from memkernel.jupyter.notebook import Notebook
from memkernel.models import MemoryStore, ServerStatus

if TYPE_CHECKING:
    from memkernel.handle.connection import Connection


def _declare_connect(parser: Parser) -> None:
    parser.add_argument(
        "dsn", metavar="DSN", nargs="?", help="postgresql://…; default: MEMKERNEL_DSN, else the embedded PostgreSQL"
    )
    gives_result(parser)


def connect(notebook: Notebook, args: Namespace, body: str | None) -> Connection:
    """Connect to another database, or to the same one anew."""
    return notebook.connect(args.dsn)


def status(notebook: Notebook, args: Namespace, body: str | None) -> ServerStatus:
    """The server as it is now."""
    return notebook.connection.status()


def _declare_stores(parser: Parser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="archived ones too")
    takes_limit(parser, "stores")
    gives_result(parser, rows=True)


def stores(notebook: Notebook, args: Namespace, body: str | None) -> Records[MemoryStore]:
    """The stores, newest first."""
    found = notebook.connection.stores(include_archived=args.all)
    if not found:
        print("There is no memory store yet: `%memory use NAME --create` makes one.")
    return found.first(args.limit)


def _declare_create(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the display name")
    parser.add_argument("-d", "--description", metavar="TEXT", default="", help="what it is for; agents read this")
    gives_result(parser)


def create(notebook: Notebook, args: Namespace, body: str | None) -> Store:
    """A new store, whose name no other active store has."""
    return notebook.connection.create_store(args.name, description=args.description, unique=True)


def _declare_use(parser: Parser) -> None:
    parser.add_argument(
        "store", metavar="STORE", nargs="?", help="an id, a name or a slug; without it: which one is in use"
    )
    parser.add_argument("--create", action="store_true", help="make it where no store has this name")
    gives_result(parser)


def use(notebook: Notebook, args: Namespace, body: str | None) -> Store:
    """Take a store into use, or tell which one is."""
    return notebook.store() if args.store is None else notebook.use(args.store, create=args.create)


def _declare_verify(parser: Parser) -> None:
    parser.add_argument("store", metavar="STORE", nargs="?", help="an id, a name or a slug; default: the one in use")
    gives_result(parser, rows=True)


def verify(notebook: Notebook, args: Namespace, body: str | None) -> Problems:
    """What is wrong with a store, a line each; a sentence where nothing is."""
    store = notebook.store() if args.store is None else notebook.connection.store(args.store)
    return store.verify()


def _declare_ending(parser: Parser) -> None:
    parser.add_argument("store", metavar="STORE", help="an id, a name or a slug")
    asks(parser)
    gives_result(parser)


def archive(notebook: Notebook, args: Namespace, body: str | None) -> Store:
    """Make a store read-only, for ever."""
    store = notebook.connection.store(args.store)
    confirm(
        f"archive of {store.slug}",
        yes=args.yes,
        question=f"Make {store.name!r} read-only? This cannot be undone. [y/N]",
    )
    store.archive()
    return store


def drop(notebook: Notebook, args: Namespace, body: str | None) -> Done:
    """Delete a store with its history."""
    store = notebook.connection.store(args.store)
    confirm(
        f"drop of {store.slug}",
        yes=args.yes,
        question=f"Delete {store.name!r}, its {store.record.memory_count:,} memories and all their versions? "
        f"This cannot be undone. Type the store's name to do it:",
        typed=store.name.strip(),
    )
    store.drop()
    notebook.dropped(store)
    return Done(1, f"Dropped {store.name!r} with its whole history.")


COMMANDS: Final = (
    Command(
        "connect",
        "Connect to a PostgreSQL, or to the same one anew.",
        _declare_connect,
        connect,
        ("%memory connect", "%memory connect postgresql://ann@db.example.org/notes"),
    ),
    Command("status", "The server, its schema, what it holds.", gives_result, status),
    Command(
        "stores",
        "The memory stores, newest first.",
        _declare_stores,
        stores,
        ("%memory stores", "%memory stores --all --df"),
    ),
    Command(
        "create",
        "Make a memory store.",
        _declare_create,
        create,
        ('%memory create "Team notes" --description "House rules"',),
    ),
    Command(
        "use",
        "Choose the store that paths without a store mean.",
        _declare_use,
        use,
        ("%memory use team-notes", '%memory use "Team notes" --create'),
    ),
    Command(
        "verify",
        "Check a store: the numbers of its changes, the hashes of its texts, its memories.",
        _declare_verify,
        verify,
        ("%memory verify", "%memory verify team-notes"),
    ),
    Command(
        "archive", "Make a store read-only, for ever.", _declare_ending, archive, ("%memory archive team-notes -y",)
    ),
    Command(
        "drop", "Delete a store, its memories and their history.", _declare_ending, drop, ("%memory drop team-notes",)
    ),
)
