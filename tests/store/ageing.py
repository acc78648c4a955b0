"""Time that passes: everything a database holds becomes older."""

from __future__ import annotations

from datetime import timedelta

import psycopg

_TIMES = {
    "memory_stores": ("head_at", "created_at", "updated_at", "archived_at", "pruned_before"),
    "memories": ("created_at", "updated_at"),
    "memory_versions": ("created_at", "redacted_at"),
}


def let_pass(dsn: str, time: timedelta, store_id: str | None = None) -> None:
    """As if all that is there, or one store, had been made so much earlier.

    The superuser switches off the triggers that keep versions as they are, for this transaction alone.
    """
    with psycopg.connect(dsn) as owner:
        owner.execute("SET LOCAL session_replication_role = replica")
        for table, columns in _TIMES.items():
            moved = ", ".join(f"{column} = {column} - %(time)s" for column in columns)
            key = "id" if table == "memory_stores" else "memory_store_id"
            owner.execute(
                f"UPDATE memkernel.{table} SET {moved} WHERE %(store)s::text IS NULL OR {key} = %(store)s".encode(),
                {"time": time, "store": store_id},
            )
