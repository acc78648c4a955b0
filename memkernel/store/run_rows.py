"""Runs and their events between records and PostgreSQL: rows to records, and values as `json` and `text` take them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from psycopg import pq

from memkernel.errors import InvalidInputError
from memkernel.models import RunEvent, RunKind, RunRecord, RunStatus, Usage
from memkernel.store import rows

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"


def json_text(value: object) -> str:
    """A value as JSON text that `json` keeps as it is: also with U+0000 and lone surrogates, which become escapes.

    What JSON has no number for (NaN, infinity) becomes null.

    Raises:
        InvalidInputError: it is nothing that JSON could hold.
    """
    try:
        text = _dumped(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"this cannot be kept as JSON: {error}") from None
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _dumped(value: object) -> str:
    try:
        return _encode(value)
    except ValueError:
        return _encode(_finite(value))


def _encode(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_as_dict)


def _as_dict(value: object) -> dict[str, object]:
    if isinstance(value, Mapping):
        return dict(cast(Mapping[str, object], value))
    raise TypeError(f"{type(value).__name__} is none of its types")


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in cast(Mapping[str, object], value).items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in cast(Sequence[object], value)]
    return value


def plain_text(value: str) -> str:
    """A text as `text` can hold it: what PostgreSQL refuses is replaced by U+FFFD."""
    return _UNSTORABLE.sub(_REPLACEMENT, value)


def run(result: pq.abc.PGresult, row: int) -> RunRecord:
    """A row of run_queries.RUN."""
    get = result.get_value
    return RunRecord(
        id=rows.text(get(row, 0)),
        session_id=rows.text(get(row, 1)),
        kind=cast(RunKind, rows.text(get(row, 2))),
        model=rows.text(get(row, 3)),
        prompt=rows.text(get(row, 4)),
        status=cast(RunStatus, rows.text(get(row, 5))),
        turns=rows.number(get(row, 6)),
        stop_reason=rows.optional_text(get(row, 7)),
        usage=Usage(*(rows.number(get(row, column)) for column in range(8, 12))),
        cost_usd=None if (cost := get(row, 12)) is None else float(cost),
        memory_store_ids=tuple(json.loads(get(row, 13) or b"[]")),
        previous_run_id=rows.optional_text(get(row, 14)),
        error=rows.text(get(row, 15)),
        started_at=rows.moment(get(row, 16)),
        seen_at=rows.moment(get(row, 17)),
        ended_at=None if (ended := get(row, 18)) is None else rows.moment(ended),
    )


def event(result: pq.abc.PGresult, row: int) -> RunEvent:
    """A row of run_queries.RUN_EVENTS."""
    get = result.get_value
    data: dict[str, Any] = json.loads(get(row, 2) or b"{}")
    return RunEvent(rows.number(get(row, 0)), rows.text(get(row, 1)), data, rows.moment(get(row, 3)))
