"""What a store holds: browse, ls, tree, cat, search, grep."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from memkernel.handle.browse import Browse
from memkernel.handle.records import Records
from memkernel.jupyter.arguments import Parser, gives_result, parse_address, takes_limit, takes_path, takes_store
from memkernel.jupyter.command import Command
from memkernel.jupyter.notebook import Notebook
from memkernel.jupyter.tree import Tree
from memkernel.models import GrepMatch, Memory, MemoryPrefix, MemoryVersion, SearchHit

_HITS: Final = 20


def _declare_browse(parser: Parser) -> None:
    parser.add_argument(
        "store", metavar="STORE", nargs="?", help="a store's id, name or slug, or a PATH; default: the one in use"
    )
    takes_path(parser, optional=True, help="a directory, or the memory to look at first")
    gives_result(parser, rows=True)


def browse(notebook: Notebook, args: Namespace, body: str | None) -> Browse:
    """The store in use to look at; where none is, the stores to choose from."""
    ref, path = args.store, args.path
    if path is None and ref is not None and (ref.startswith("/") or parse_address(ref).store is not None):
        place = notebook.place_now(ref, args=Namespace(store=None))
        return place.store.browse(place.path)
    if ref is None and notebook.store_in_use is None:
        return Browse(notebook.connection)
    return notebook.store(ref).browse(path or "/")


def _declare_ls(parser: Parser) -> None:
    takes_path(parser, optional=True, default="/", help="a directory or a memory; default: /")
    parser.add_argument("-r", "--recursive", action="store_true", help="the whole subtree")
    takes_store(parser)
    takes_limit(parser, "entries")
    gives_result(parser, rows=True)


def ls(notebook: Notebook, args: Namespace, body: str | None) -> Records[Memory | MemoryPrefix]:
    """The memories and directories at a path."""
    place = notebook.place_now(args.path, args)
    return place.store.ls(place.path, depth=0 if args.recursive else 1).first(args.limit)


def _declare_tree(parser: Parser) -> None:
    takes_path(parser, optional=True, default="/", help="a directory; default: /")
    takes_store(parser)
    gives_result(parser)


def tree(notebook: Notebook, args: Namespace, body: str | None) -> Tree:
    """Everything below a path, drawn as a tree."""
    place = notebook.place_now(args.path, args)
    return Tree(place.path, tuple(each.path for each in place.store.ls(place.path, depth=0)))


def _declare_cat(parser: Parser) -> None:
    takes_path(parser, help="a memory, perhaps @VERSION")
    takes_store(parser)
    gives_result(parser)


def cat(notebook: Notebook, args: Namespace, body: str | None) -> Memory | MemoryVersion:
    """A memory with its text, or one of its versions."""
    place = notebook.place(args.path, args)
    if place.version is not None:
        return place.store.version(place.path, place.version)
    memory = place.store.memory(place.path)
    notebook.heads.note(place.store.id, place.path, memory.memory_version_id)
    return memory


def _declare_search(parser: Parser) -> None:
    parser.add_argument("query", metavar="WORDS", help="words that all have to occur, in one pair of quotes")
    takes_path(parser, optional=True, default="/", help="search only at or below this path")
    takes_store(parser)
    takes_limit(parser, "memories")
    gives_result(parser, rows=True)


def search(notebook: Notebook, args: Namespace, body: str | None) -> Records[SearchHit]:
    """The memories that hold the words, best first."""
    place = notebook.place_now(args.path, args)
    return place.store.search(args.query, place.path, limit=args.limit or _HITS)


def _declare_grep(parser: Parser) -> None:
    parser.add_argument("pattern", metavar="PATTERN", help="a regular expression (Python's re)")
    takes_path(parser, optional=True, default="/", help="search only at or below this path")
    parser.add_argument("-i", "--ignore-case", action="store_true", help="match letters whatever their case")
    takes_store(parser)
    takes_limit(parser, "lines")
    gives_result(parser, rows=True)


def grep(notebook: Notebook, args: Namespace, body: str | None) -> Records[GrepMatch]:
    """The lines that match."""
    place = notebook.place_now(args.path, args)
    return place.store.grep(args.pattern, place.path, ignore_case=args.ignore_case).first(args.limit)


COMMANDS: Final = (
    Command(
        "browse",
        "Look through a store: memories, texts, history.",
        _declare_browse,
        browse,
        ("%memory browse", "%memory browse team-notes", "%memory browse handbook:/rules"),
    ),
    Command("ls", "List memories and directories.", _declare_ls, ls, ("%memory ls /", "%memory ls handbook:/rules -r")),
    Command("tree", "Draw everything below a path.", _declare_tree, tree, ("%memory tree", "%memory tree /projects")),
    Command(
        "cat",
        "Show a memory, or a version of it.",
        _declare_cat,
        cat,
        ("%memory cat /units.md", "%memory cat /units.md@-1"),
    ),
    Command(
        "search",
        "Search contents and paths for words, best first.",
        _declare_search,
        search,
        ("%memory search retry", '%memory search "retry policy" /projects -n 5'),
    ),
    Command(
        "grep",
        "Search the memories' lines.",
        _declare_grep,
        grep,
        ('%memory grep "SI units"', r"%memory grep -i todo /projects"),
    ),
)
