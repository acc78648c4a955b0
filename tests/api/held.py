"""A store that somebody else's long change holds."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import psycopg


@contextmanager
def held(dsn: str, store: str) -> Generator[Callable[[], int]]:
    """Hold a store's lock for a block, which is given a function: how many wait for it."""
    with psycopg.connect(dsn) as holder, psycopg.connect(dsn, autocommit=True) as observer:
        holder.execute("SELECT pg_advisory_xact_lock(memkernel.lock_key(%s))", [store])

        def waiting() -> int:
            row = observer.execute(
                "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
                "WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted"
            ).fetchone()
            return row[0] if row else 0

        yield waiting
