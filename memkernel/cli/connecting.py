"""The database that a command works on."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memkernel import cluster
from memkernel.models import Settings

if TYPE_CHECKING:
    from memkernel.store import Database


@contextmanager
def connected(settings: Settings) -> Generator[tuple[Database, str]]:
    """The database that the environment chooses, and what a person calls it; an embedded one is started."""
    from memkernel.store import Database

    chosen = cluster.choose(None, settings)
    with Database(chosen.dsn, migrate=chosen.cluster is not None) as database:
        yield database, chosen.line
