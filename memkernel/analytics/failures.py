"""The one door where DuckDB's errors become memkernel's: a sentence with the position, and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Final

import duckdb

from memkernel.analytics.tables import COLUMN_NAMES, TABLES
from memkernel.errors import MemkernelError, QueryError, QueryRefusedError

MEMORY_LIMIT: Final = "4GB"
TABLES_HINT: Final = f"The tables are {', '.join(TABLES)}."

_WALL_WORDS: Final = ("disabled by configuration", "disabled through configuration", "configuration has been locked")
_READ_ONLY_WORDS: Final = "read-only mode"
_COLUMNS_HINT: Final = "DESCRIBE memory_versions lists a table's columns."
_FUNCTIONS_HINT: Final = "The functions are DuckDB's."
_LONGEST: Final = 300


def translate(error: duckdb.Error, sql: str) -> MemkernelError:
    """The memkernel error that this error of DuckDB is.

    Args:
        error: raised while `errors_as_json` is set; its position counts bytes.
        sql: the query that it speaks of.
    """
    facts = _facts(error)
    message: str = facts["exception_message"]
    if isinstance(error, duckdb.OutOfMemoryException):
        return QueryError(
            f"the query needs more memory than the {MEMORY_LIMIT} that it may use",
            hint="Name fewer columns (most bytes are in content), or filter or aggregate earlier.",
        )
    if isinstance(error, duckdb.PermissionException) or any(words in message for words in _WALL_WORDS):
        return QueryRefusedError(
            "the query is not run: it reaches for files, extensions or settings", hint="SQL here only reads memories."
        )
    if _READ_ONLY_WORDS in message:
        return QueryRefusedError("the query is not run: it would write", hint="SQL here only reads.")
    return _explain(facts, sql)


def no_such_table(name: str, sql: str, position: int | None) -> QueryError:
    """The query names a table that is not there; `position` counts bytes."""
    return _missing("table", name, TABLES, sql, position, otherwise=TABLES_HINT)


def _facts(error: duckdb.Error) -> dict[str, Any]:
    text = str(error)
    with suppress(ValueError):
        facts: dict[str, Any] = json.loads(text[text.index("{") :])
        if "exception_message" in facts:
            return facts
    return {"exception_message": text}  # the Python layer's own messages are plain


def _explain(facts: dict[str, Any], sql: str) -> QueryError:
    position = int(facts["position"]) if "position" in facts else None
    near = facts.get("candidates", "").split(",")
    if facts.get("error_subtype") == "COLUMN_NOT_FOUND":
        return _missing("column", facts["name"], {*near, *COLUMN_NAMES}, sql, position, otherwise=_COLUMNS_HINT)
    if facts.get("error_subtype") == "MISSING_ENTRY" and "Function" in facts.get("type", ""):
        return _missing("function", facts["name"], near, sql, position, otherwise=_FUNCTIONS_HINT)
    first, *others = [line.strip() for line in facts["exception_message"].splitlines() if line.strip()] or ["it failed"]
    # What DuckDB advises to SET cannot be set here.
    hint = next((line for line in others if '"SET ' not in line and not line.endswith(":")), "")
    return QueryError(first.partition(". Use ")[0][:_LONGEST], hint=hint[:_LONGEST], **_place(sql, position))


def _missing(
    what: str, name: str, known: Iterable[str], sql: str, position: int | None, *, otherwise: str
) -> QueryError:
    near = get_close_matches(name.lower(), sorted(known), n=3, cutoff=0.5)
    hint = f"Near: {', '.join(near)}" if near else otherwise
    return QueryError(f"there is no {what} {name!r}", hint=hint, **_place(sql, position))


def _place(sql: str, position: int | None) -> dict[str, int]:
    """Line and column, both 1-based, of a byte in the SQL."""
    if position is None:
        return {}
    before = sql.encode()[:position].decode(errors="replace")
    return {"line": before.count("\n") + 1, "column": len(before) - before.rfind("\n")}
