"""Routes, and how a request finds its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import unquote

from memkernel.api.params import Field, Json
from memkernel.models import Actor
from memkernel.store import Database

MEMORY_BETA: Final = "agent-memory-2026-07-22"
SESSION_BETA: Final = "managed-agents-2026-04-01"


class Call(NamedTuple):
    """What a handler is given.

    Attributes:
        database: in the workspace already.
        actor: who calls.
        ids: those of the path, decoded, in their order.
        query: the checked parameters that were sent, by their Python names.
        body: the checked members that were sent.
    """

    database: Database
    actor: Actor
    ids: tuple[str, ...]
    query: Json
    body: Json


@dataclass(frozen=True, slots=True)
class Route:
    """A method of a path.

    Attributes:
        method: in capitals.
        path: its ids in braces.
        handler: makes the answer; its docstring is the route's description.
        answer: the answer's schema, by its name among the components.
        query: what it reads of the query.
        body: what it reads of the body; None: the body is ignored.
        betas: with strict betas, exactly one of these is asked for (CONTRACT B.1).
        conflicts: whether it can meet another's change: 409.
    """

    method: str
    path: str
    handler: Callable[[Call], Json]
    answer: str
    query: tuple[Field, ...] = ()
    body: tuple[Field, ...] | None = None
    betas: tuple[str, ...] = (MEMORY_BETA, SESSION_BETA)
    conflicts: bool = False

    @property
    def writes(self) -> bool:
        """Whether a read-only key may not call it."""
        return self.method != "GET"

    @property
    def name(self) -> str:
        """As the SDKs call it: `memory_stores.create`."""
        return f"{self.handler.__module__.rpartition('.')[2]}.{self.handler.__name__}"


class _Node:
    """A segment of paths: what may follow it, and the methods of the path that ends here."""

    __slots__ = ("any", "methods", "words")

    def __init__(self) -> None:
        self.words: dict[str, _Node] = {}
        self.any: _Node | None = None
        self.methods: dict[str, Route] = {}

    def child(self, segment: str) -> _Node:
        if not segment.startswith("{"):
            return self.words.setdefault(segment, _Node())
        self.any = self.any or _Node()
        return self.any


class RouteTable:
    """Finds a path's routes with one look a segment."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Node()
        for route in self.routes:
            node = self._root
            for segment in route.path.split("/"):
                node = node.child(segment)
            node.methods[route.method] = route

    def find(self, path: str) -> tuple[dict[str, Route], tuple[str, ...]]:
        """The routes of a path, by method, and the ids in it; no routes where there is no such path.

        Args:
            path: percent-encoded. Only its ids are decoded: a `%2F` is part of an id.
        """
        node, ids = self._root, list[str]()
        for segment in path.split("/"):
            following = node.words.get(segment)
            if following is None:
                if node.any is None or not segment:
                    return {}, ()
                following = node.any
                ids.append(unquote(segment))
            node = following
        return node.methods, tuple(ids)
