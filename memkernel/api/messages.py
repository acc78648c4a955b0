"""What goes into `dispatch` and what comes out of it: plain values, whoever carries them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memkernel.models import Actor


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came off the wire.

    Attributes:
        method: in capitals.
        path: still percent-encoded, without the query.
        query: the raw query, without its `?`.
        headers: names in lower case.
        body: whole, at most as long as the rim lets through.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """A response; its body is JSON, and `request-id` is among its headers (CONTRACT B.1)."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf a request is made: it reaches the rows of one workspace, and writes as one actor."""

    workspace_id: str
    actor: Actor
    read_only: bool = False
