"""`%%memory sql`: read-only SQL over the stores, memories, versions and runs."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Final

from IPython.core.error import UsageError

from memkernel.jupyter.arguments import Parser, gives_result, takes_limit
from memkernel.jupyter.command import Command
from memkernel.jupyter.notebook import Notebook

if TYPE_CHECKING:
    from memkernel.analytics.sql import SqlResult


def _declare_sql(parser: Parser) -> None:
    takes_limit(parser, "rows")
    gives_result(parser, rows=True)


def sql(notebook: Notebook, args: Namespace, body: str | None) -> SqlResult:
    """Run the cell's body, one SELECT of DuckDB's SQL."""
    if not (body or "").strip():
        raise UsageError(
            "%%memory sql has no query\nWrite it below: SELECT path, count(*) FROM memory_versions GROUP BY path"
        )
    return notebook.connection.sql(body or "", limit=args.limit or notebook.preferences["limit"])


COMMANDS: Final = (
    Command(
        "sql",
        "Read-only SQL (DuckDB's) over the stores, memories, versions and runs.",
        _declare_sql,
        sql,
        ("%%memory sql --df -o versions",),
        body="always",
    ),
)
