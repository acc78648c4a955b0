"""The database that a command works on."""

from __future__ import annotations

import argparse
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from memkernel import cluster
from memkernel.models import Settings

if TYPE_CHECKING:
    from memkernel.store import Database


def add_dsn(parser: argparse.ArgumentParser) -> None:
    """The option that names the database: one that serves and one that makes its keys must mean the same."""
    parser.add_argument("--dsn", help="postgresql://…; without it MEMKERNEL_DSN, then the embedded one")


@contextmanager
def connected(settings: Settings, dsn: str | None = None, **options: Any) -> Generator[tuple[Database, str]]:
    """The database of a DSN, or that the environment chooses, and what a person calls it; an embedded one is started.

    Args:
        settings: `config.load()`.
        dsn: as the command's line gives it.
        options: further ones of `Database`.
    """
    from memkernel.store import Database

    chosen = cluster.choose(dsn, settings)
    with Database(chosen.dsn, migrate=chosen.cluster is not None, **options) as database:
        yield database, chosen.line
