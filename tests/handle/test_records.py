"""`Records`: all of the rows are held, the first are shown, a DataFrame is one call away (UX 1.3)."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from IPython.core.formatters import DisplayFormatter

from memkernel.handle.records import Records
from memkernel.models import GrepMatch, Memory, MemoryPrefix

FOUND = [GrepMatch("/a.md", 1, "SI"), GrepMatch("/b.md", 2, "SI units")]
TABLE = ["path   line  text", "─────  ────  ────────", "/a.md     1  SI", "/b.md     2  SI units"]


@pytest.fixture
def rows_shown() -> Iterator[None]:
    """Leaves the setting as it was."""
    before = Records.rows_shown
    yield
    Records.rows_shown = before


def shown(thing: Any) -> dict[str, str]:
    """What IPython would show as a cell's result."""
    formatter: Any = DisplayFormatter()
    data, _ = formatter.format(thing)
    return data


def memory(number: int) -> Memory:
    now = datetime(2026, 11, 30, tzinfo=UTC)
    return Memory(f"mem_{number}", "memstore_1", "memver_1", f"/{number:04}.md", None, 3, "0" * 64, now, now)


def test_the_result_of_a_cell_is_a_table_as_text_and_as_html() -> None:
    data = shown(Records(FOUND))
    assert data["text/plain"].split("\n") == TABLE
    assert "<td><code>/b.md</code></td>" in data["text/html"]


def test_in_a_terminal_it_is_the_same_table() -> None:
    assert repr(Records(FOUND)).split("\n") == TABLE
    assert str(Records(FOUND)).split("\n") == TABLE


def test_inside_another_thing_it_is_a_word() -> None:
    assert shown({"found": Records(FOUND)})["text/plain"] == "{'found': <2 records>}"


def test_60_of_2000_rows_are_shown_and_all_are_held() -> None:
    records = Records(memory(number) for number in range(2_000))
    assert len(records) == 2_000
    assert repr(records).split("\n")[-1] == "60 of 2,000 shown"
    assert "60 of 2,000 shown" in shown(records)["text/html"]


@pytest.mark.usefixtures("rows_shown")
def test_how_many_rows_are_shown_is_a_setting() -> None:
    Records.rows_shown = 1
    assert repr(Records(FOUND)).split("\n")[-1] == "1 of 2 shown"


def test_the_first_ones_tell_of_the_others() -> None:
    first = Records(FOUND, kind=GrepMatch).first(1)
    assert list(first) == FOUND[:1]
    assert first.kind is GrepMatch
    assert repr(first).split("\n")[-1] == "1 of 2 shown"
    assert "shown" not in repr(Records(FOUND).first(2))
    assert list(Records(FOUND).first(None)) == FOUND


def test_a_total_that_the_caller_knows_is_told() -> None:
    assert repr(Records(FOUND, total=300)).split("\n")[-1] == "2 of 300 shown"


def test_a_slice_is_records_again_and_an_item_is_the_record() -> None:
    records = Records(FOUND, kind=GrepMatch)
    assert isinstance(records[1:], Records)
    assert records[1:].kind is GrepMatch
    assert records[0] is FOUND[0]
    assert records[-1] is FOUND[1]


def test_it_is_a_list_in_every_other_way() -> None:
    records = Records(FOUND)
    assert records == FOUND
    assert [*records] == FOUND
    assert Records[GrepMatch]() == []
    assert copy.copy(Records(FOUND, total=9)).total == 9
    assert pickle.loads(pickle.dumps(Records(FOUND, kind=GrepMatch))).kind is GrepMatch


def test_an_empty_one_says_so() -> None:
    assert repr(Records[Memory](kind=Memory)) == "(none)"
    assert "(none)" in shown(Records[Memory](kind=Memory))["text/html"]


def test_df_has_a_row_a_record_and_its_columns_even_when_empty() -> None:
    frame = Records(FOUND, kind=GrepMatch).df()
    assert list(frame["line"]) == [1, 2]
    assert list(Records[GrepMatch](kind=GrepMatch).df().columns) == list(frame.columns)
    assert len(Records([memory(1), MemoryPrefix("/a/")], kind=Memory).df()) == 2
