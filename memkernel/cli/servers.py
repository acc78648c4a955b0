"""`memkernel migrate | stop`: the PostgreSQL underneath."""

from __future__ import annotations

import argparse

from memkernel import cluster, config
from memkernel.cli.commands import Commands


def add(commands: Commands) -> None:
    """The commands' lines."""
    migrate = commands.add_parser("migrate", help="bring a database's memkernel tables up to this version")
    migrate.add_argument("dsn", nargs="?", help="postgresql://…; without it MEMKERNEL_DSN, then the embedded one")
    migrate.set_defaults(run=_migrate)
    stop = commands.add_parser("stop", help="stop the embedded PostgreSQL, whoever uses it")
    stop.set_defaults(run=_stop)


def _migrate(options: argparse.Namespace) -> int:
    from memkernel.store import Database

    settings = config.load()
    chosen = cluster.choose(options.dsn, settings)
    print(chosen.line)
    with Database(chosen.dsn, migrate=True) as database:
        print(f"The memkernel tables are at schema {database.status().schema_version}.")
    return 0


def _stop(_: argparse.Namespace) -> int:
    stopped = _cluster().stop()
    print("The embedded PostgreSQL was stopped." if stopped else "No embedded PostgreSQL was running.")
    return 0


def _cluster() -> cluster.EmbeddedCluster:
    settings = config.load()
    return cluster.EmbeddedCluster(home=settings.home, pg_bin=settings.pg_bin, pg_user=settings.pg_user)
