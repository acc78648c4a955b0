"""Tab completion of the magics' lines: commands, options, stores, paths, versions (UX 1.3, fault 49)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, TypeAlias

from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,  # pyright: ignore[reportUnknownVariableType]  # IPython does not annotate what it returns
)

from memkernel import paths
from memkernel.handle.points import DAYS
from memkernel.jupyter import words
from memkernel.jupyter.arguments import Parser, format_path, parse_address
from memkernel.jupyter.command import Magic
from memkernel.jupyter.commands import table
from memkernel.jupyter.commands.agent_options import LAST, POLICIES
from memkernel.jupyter.notebook import Notebook
from memkernel.jupyter.preferences import SETTINGS

if TYPE_CHECKING:
    from memkernel.handle.connection import Connection

MATCHER_ID: Final = "memkernel"
MOST: Final = 200
_PRIORITY: Final = 100
_RUNS: Final = 50

_TOOLS: Final = ("memory", "bash", "read", "write", "edit", "glob", "grep")
_APPROVALS: Final = [f"{tool}={policy}" for policy in POLICIES for tool in _TOOLS]

_MAGIC: Final = re.compile(
    rf"\s*(?:[^%#]*=\s*)?(?P<mark>%{{1,2}})(?P<magic>{'|'.join(table.MAGICS)})\s+(?P<rest>.*)", re.DOTALL
)


class _Silence(tuple[SimpleCompletion, ...]):
    """No matches, yet IPython's other matchers keep quiet: they would offer files of this machine for a memory's path.

    IPython lets a matcher silence the others only if `len` says that it has matches itself.
    """

    __slots__ = ()

    def __len__(self) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class Typing:
    """An argument that is being typed.

    Attributes:
        before: the words before it that belong to no option.
        store: the store that an option names.
        meaning: what the word means so far.
        typed: how it is typed so far, quotes included.
    """

    before: list[str]
    store: str | None
    meaning: str
    typed: str


Source: TypeAlias = Callable[[Typing], Iterable[str]]
Found: TypeAlias = tuple[str, list[str] | None]
"""What is being typed, and what it can become; None leaves that to IPython's own matchers."""


class Completer:
    """The matcher of one kernel."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook
        self._sources: dict[str, Source] = {
            "PATH": self._addresses,
            "NEW_PATH": self._paths_of_the_store,
            "STORE": lambda _: self._stores(),
            "VERSION": self._versions,
            "POINT": lambda _: DAYS,
            "SETTING": lambda _: SETTINGS,
            "VALUE": _setting_values,
            "VAR": self._variables,
            "SANDBOX": lambda _: sorted(set(self._notebook.sandboxes.names)),
            "RUN": lambda _: self._runs(),
            "MODEL": lambda _: _models(),
            "NAME=HOW": lambda _: _APPROVALS,
            "TIME": lambda _: DAYS,
            "RECORDING": lambda typing: _recordings(typing.typed),
            "%memory browse STORE": lambda typing: [*self._stores(), *self._addresses(typing)],
            "%agent stop RUN": lambda _: self._running(),
            "%agent approve RUN": lambda _: self._running(),
            "%agent deny RUN": lambda _: self._running(),
            "%sandbox changes PATH": lambda _: self._rejected(),
            "%sandbox resolve PATH": lambda _: self._rejected(),
        }

    @context_matcher(identifier=MATCHER_ID, priority=_PRIORITY)  # pyright: ignore[reportUntypedFunctionDecorator]  # the same
    def match(self, context: CompletionContext) -> SimpleMatcherResult:
        """IPython's matcher, API v2."""
        line = _MAGIC.fullmatch(context.text_until_cursor)
        found = self._complete(line["mark"], table.MAGICS[line["magic"]], line["rest"]) if line else ("", None)
        typed, candidates = found
        if candidates is None:
            return {"completions": []}
        completions = [SimpleCompletion(text, type="memory") for text in candidates[:MOST]]
        return {
            "completions": completions or _Silence(),
            "matched_fragment": typed,
            "suppress": True,
            "ordered": True,
        }

    def _complete(self, mark: str, magic: Magic, rest: str) -> Found:
        finished, typed = words.unfinished(rest)
        if mark == "%%" and magic.cell is not None and finished[:1] != ["help"]:
            return self._complete_argument(magic.cell.parser, finished, typed)
        if magic.cell is not None and magic.cell.body == "either" and (finished[:1] or [typed])[0].startswith("-"):
            return self._complete_argument(magic.cell.parser, finished, typed)
        if finished in ([], ["help"]):
            names = list(magic.commands) if finished else _command_names(magic, mark)
            return typed, [name for name in names if name.startswith(typed)]
        command = magic.commands.get(finished[0])
        return self._complete_argument(command.parser, finished[1:], typed) if command else (typed, [])

    def _complete_argument(self, parser: Parser, finished: list[str], typed: str) -> Found:
        option, equals, value = typed.partition("=")
        if equals and parser.takes_value(option):
            return self._complete_option(parser, option, finished, value)
        if finished and parser.takes_value(finished[-1], typed):
            return self._complete_option(parser, finished[-1], finished, typed)
        if typed.startswith("-") and "--" not in finished:
            return typed, [name for name in parser.option_names() if name.startswith(typed)]
        before = parser.positionals(finished)
        if choices := parser.choices_at(len(before)):
            return typed, [each for each in choices if each.startswith(typed)]
        metavar = parser.metavar_at(len(before))
        own = f"{parser.prog} {metavar}"  # a command's own words come before all that the place can hold
        return self._complete_value(own if own in self._sources else metavar, before, finished, typed)

    def _complete_option(self, parser: Parser, option: str, finished: list[str], typed: str) -> Found:
        if choices := parser.choices_of(option):
            return typed, [each for each in choices if each.startswith(typed)]
        return self._complete_value(parser.metavar_of(option), [], finished, typed)

    def _complete_value(self, metavar: str | None, before: list[str], finished: list[str], typed: str) -> Found:
        if metavar == "FILE" or (metavar == "RECORDING" and not _recordings(typed)):
            return typed, None
        typing = Typing(before, _named_store(finished), words.meant(typed), typed)
        source = self._sources.get(metavar or "", lambda _: ())
        matching = (value for value in source(typing) if value.startswith(typing.meaning))
        return typed, [words.quote_like(value, typed, closed=not value.endswith("/")) for value in matching]

    # -- what can stand there ----------------------------------------------------------------------

    def _addresses(self, typing: Typing) -> Iterable[str]:
        address = parse_address(typing.meaning)
        path, at, _ = typing.meaning.rpartition("@")
        if at and not path.endswith("/"):
            yield from (f"{path}{version}" for version in self._versions_of(typing, path))
        if not typing.meaning.startswith("/") and address.store is None:
            yield from (f"{store}:/" for store in self._stores())
        prefix = "" if address.store is None else f"{address.store}:"
        below = typing.meaning.removeprefix(prefix)
        yield from (prefix + path for path in _steps(self._paths(address.store or typing.store), below))

    def _paths_of_the_store(self, typing: Typing) -> Iterable[str]:
        address = parse_address(typing.before[0])
        return _steps(self._paths(address.store or typing.store), typing.meaning)

    def _versions(self, typing: Typing) -> Iterable[str]:
        return self._versions_of(typing, typing.before[0])

    def _versions_of(self, typing: Typing, text: str) -> list[str]:
        address = parse_address(text)
        ref, path = address.store or typing.store, address.path
        return self._ask(("versions", ref, path), lambda connection: self._fetch_versions(connection, ref, path))

    def _paths(self, ref: str | None) -> list[str]:
        return self._ask(("paths", ref), lambda connection: self._fetch_paths(connection, ref))

    def _stores(self) -> list[str]:
        return self._ask(("stores",), _fetch_stores)

    def _rejected(self) -> Iterable[str]:
        box = self._notebook.sandboxes.current
        if box is None:
            return ()
        return self._notebook.known.get(("rejected", box.id), lambda: sorted({each.path for each in box.rejected}))

    def _runs(self) -> Iterable[str]:
        return [LAST, *self._ask(("runs",), _fetch_runs)]

    def _running(self) -> Iterable[str]:
        here = [run.id for run in self._notebook.agents.running]
        return list(dict.fromkeys([*here, *self._ask(("running",), _fetch_running)]))

    def _variables(self, _: Typing) -> Iterable[str]:
        return sorted(name for name in self._notebook.shell.user_ns if not name.startswith("_"))

    # -- the database, in the background -----------------------------------------------------------

    def _ask(self, key: tuple[str | None, ...], fetch: Callable[[Connection], list[str]]) -> list[str]:
        connection, store = self._notebook.connected, self._notebook.store_in_use
        if connection is None:
            return []
        return self._notebook.known.get((id(connection), store and store.id, *key), lambda: fetch(connection))

    def _fetch_paths(self, connection: Connection, ref: str | None) -> list[str]:
        store = self._notebook.store() if ref is None else connection.store(ref)
        return [path for path, _ in connection.database.memories.entries(store.id)]

    def _fetch_versions(self, connection: Connection, ref: str | None, path: str) -> list[str]:
        store = self._notebook.store() if ref is None else connection.store(ref)
        return ["@head", *(f"@{version.ordinal}" for version in store.log(path, limit=MOST))]


def _fetch_stores(connection: Connection) -> list[str]:
    """The shortest name of each store that names it alone: the slug, else the name, else the id (fault 27)."""
    stores = connection.stores()
    slugs, names = [paths.slug(store.name) for store in stores], [store.name for store in stores]
    return sorted(
        slug if slug and slugs.count(slug) == 1 else store.name if names.count(store.name) == 1 else store.id
        for slug, store in zip(slugs, stores, strict=True)
    )


def _fetch_runs(connection: Connection) -> list[str]:
    return [run.id for run in connection.database.runs.list(limit=_RUNS).data]


def _fetch_running(connection: Connection) -> list[str]:
    return [run.id for run in connection.database.runs.list(status="running", limit=_RUNS).data]


def _models() -> Iterable[str]:
    from memkernel.agent.prices import LIST_PRICES

    return ["scripted", *LIST_PRICES]


def _recordings(typed: str) -> list[str]:
    """The shipped recordings that begin so; where there is none, a file is being typed."""
    from memkernel.agent.recording import shipped

    return [name for name in shipped() if name.startswith(typed)]


def _command_names(magic: Magic, mark: str) -> list[str]:
    names = magic.names(mark)
    return names if mark == "%%" else [*names, "help"]


def _setting_values(typing: Typing) -> Iterable[str]:
    setting = SETTINGS.get(typing.before[0])
    return setting.values.split(" or ") if setting and " or " in setting.values else ()


def _named_store(finished: list[str]) -> str | None:
    for word, value in zip_longest(finished, finished[1:]):
        if word in ("-s", "--store"):
            return value
        if word.startswith("--store="):
            return word.removeprefix("--store=")
    return None


def _steps(known: list[str], typed: str) -> list[str]:
    """The next directories and all paths below what is typed; only the next step where there are too many."""
    below = [path for path in known if path.startswith(typed)]
    next_step = sorted({_next_step(path, len(typed)) for path in below})
    directories = [step for step in next_step if step.endswith("/")]
    every = [*directories, *map(format_path, below)]
    return every if len(every) <= MOST else next_step


def _next_step(path: str, start: int) -> str:
    slash = path.find("/", max(start, 1))
    return format_path(path) if slash < 0 else path[: slash + 1]
