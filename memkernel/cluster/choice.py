"""Which server is used: the one that was named, then MEMKERNEL_DSN's, then the embedded one (POSTGRES.md 1.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memkernel.cluster.dsn import check_dsn, describe_dsn
from memkernel.cluster.embedded import EmbeddedCluster
from memkernel.models import Settings


@dataclass(frozen=True, slots=True)
class Chosen:
    """The server to use. Called, an embedded one's `dsn` starts it if need be.

    `line` is what a person is told about it: never a password.
    """

    dsn: str | Callable[[], str] = field(repr=False)
    kind: Literal["argument", "MEMKERNEL_DSN", "embedded"]
    cluster: EmbeddedCluster | None
    line: str


def choose(explicit: str | None, settings: Settings) -> Chosen:
    """The server to use. DATABASE_URL and PG* never decide: in an unrelated project's shell they name its database.

    Args:
        explicit: the DSN that a person gave; None if they gave none.
        settings: `config.load()`.

    Raises:
        InvalidInputError: the chosen DSN is none. Nothing else is tried instead.
        ClusterError: the embedded server is chosen, and there is no PostgreSQL to run.
    """
    if explicit is not None:
        return _external(check_dsn(explicit, "the DSN given"), "argument")
    if settings.dsn is not None:
        return _external(check_dsn(settings.dsn, "MEMKERNEL_DSN"), "MEMKERNEL_DSN")
    return _embedded(settings)


def _external(dsn: str, kind: Literal["argument", "MEMKERNEL_DSN"]) -> Chosen:
    origin = f" ({kind})" if kind == "MEMKERNEL_DSN" else ""
    return Chosen(dsn, kind, None, f"PostgreSQL at {describe_dsn(dsn)}{origin}")


def _embedded(settings: Settings) -> Chosen:
    cluster = EmbeddedCluster(
        home=settings.home, pg_bin=settings.pg_bin, pg_user=settings.pg_user, linger_s=settings.linger_s
    )
    return Chosen(cluster.ensure, "embedded", cluster, _line(cluster))


def _line(cluster: EmbeddedCluster) -> str:
    status = cluster.status()
    trouble = "; its disk is a poor place for it: see `memkernel doctor`" if status.warnings else ""
    return f"PostgreSQL {status.binaries.version}, embedded, data in {_short(status.data_directory)}{trouble}"


def _short(path: Path) -> str:
    """The path as a person writes it, `~/.local/share/memkernel/pg18/data`."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):  # elsewhere, or there is no home
        return str(path)
