"""Records as DataFrames (UX 1.3): columns, types, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
import pytest

from memkernel.analytics.frames import frame
from memkernel.models import Actor, GrepMatch, Memory, MemoryPrefix, MemoryStore, MemoryVersion

if TYPE_CHECKING:
    from decimal import Decimal

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)

STORE = MemoryStore(
    id="memstore_1",
    name="Notes",
    description="",
    metadata={"team": "é"},
    created_at=NOON,
    updated_at=NOON,
    archived_at=None,
    head_seq=3,
    memory_count=1,
)
MEMORY = Memory(
    id="mem_1",
    memory_store_id="memstore_1",
    memory_version_id="memver_2",
    path="/units.md",
    content="SI\0\n",
    content_size_bytes=4,
    content_sha256="ab" * 32,
    created_at=NOON,
    updated_at=NOON,
)
PREFIX = MemoryPrefix(path="/notes/")
WRITTEN = MemoryVersion(
    id="memver_1",
    memory_store_id="memstore_1",
    memory_id="mem_1",
    seq=1,
    ordinal=1,
    operation="created",
    path="/units.md",
    content="SI",
    content_sha256="ab" * 32,
    content_size_bytes=2,
    created_at=NOON,
    created_by=Actor("user_actor", "user_ann"),
    redacted_at=None,
    redacted_by=None,
)
REDACTED = MemoryVersion(
    id="memver_2",
    memory_store_id="memstore_1",
    memory_id="mem_1",
    seq=2,
    ordinal=2,
    operation="modified",
    path=None,
    content=None,
    content_sha256=None,
    content_size_bytes=None,
    created_at=NOON,
    created_by=Actor("session_actor", "sesn_1"),
    redacted_at=NOON,
    redacted_by=Actor("user_actor", "user_ann"),
)


def dtypes(made: pd.DataFrame) -> dict[str, str]:
    return {str(name): str(dtype) for name, dtype in made.dtypes.items()}


def test_a_store_is_a_row_with_a_column_per_field() -> None:
    made = frame([STORE])
    assert list(made.columns) == [
        "id", "name", "description", "metadata", "created_at", "updated_at", "archived_at", "head_seq", "memory_count",
    ]  # fmt: skip
    assert made.loc[0, "name"] == "Notes"
    assert made.loc[0, "metadata"] == {"team": "é"}
    assert made.loc[0, "head_seq"] == 3


def test_times_are_utc_timestamps_and_a_missing_time_is_nat() -> None:
    made = frame([STORE])
    assert dtypes(made)["created_at"] == dtypes(made)["archived_at"] == "datetime64[us, UTC]"
    assert made.loc[0, "created_at"] == pd.Timestamp(NOON)
    assert made["archived_at"].isna().all()


def test_an_actor_is_flattened_to_its_type_and_id() -> None:
    made = frame([WRITTEN, REDACTED])
    assert list(made["created_by_type"]) == ["user_actor", "session_actor"]
    assert list(made["created_by_id"]) == ["user_ann", "sesn_1"]
    assert made["redacted_by_id"].isna().tolist() == [True, False]
    assert "created_by" not in made.columns


def test_whole_numbers_stay_whole_where_some_are_missing() -> None:
    made = frame([WRITTEN, REDACTED])
    assert dtypes(made)["seq"] == "int64"
    assert dtypes(made)["content_size_bytes"] == "Int64"
    assert made["content_size_bytes"].sum() == 2


def test_a_content_is_kept_to_the_character() -> None:
    assert frame([MEMORY]).loc[0, "content"] == "SI\0\n"


def test_the_basic_view_has_a_content_column_without_values() -> None:
    assert frame([REDACTED])["content"].isna().all()


@pytest.mark.parametrize("records", [[MEMORY, PREFIX], [PREFIX, MEMORY]])
def test_a_listing_of_depth_one_mixes_memories_and_prefixes(records: list[Memory | MemoryPrefix]) -> None:
    made = frame(records, kind=(Memory, MemoryPrefix))
    by_path = made.set_index("path")
    assert list(made.columns)[:3] == ["type", "id", "memory_store_id"]
    assert by_path.loc["/notes/", "type"] == "memory_prefix"
    assert by_path["id"].isna()["/notes/"]
    assert by_path.loc["/units.md", "content_size_bytes"] == 4
    assert dtypes(made)["content_size_bytes"] == "Int64"


def test_the_columns_of_a_listing_do_not_depend_on_what_it_holds() -> None:
    kinds = (Memory, MemoryPrefix)
    listings: list[list[Memory | MemoryPrefix]] = [[MEMORY, PREFIX], [MEMORY], [PREFIX], []]
    assert len({tuple(dtypes(frame(listing, kind=kinds)).items()) for listing in listings}) == 1


@pytest.mark.parametrize(
    ("kind", "record"),
    [(MemoryStore, STORE), (Memory, MEMORY), (MemoryPrefix, PREFIX), (MemoryVersion, WRITTEN), (GrepMatch, None)],
)
def test_an_empty_list_of_a_known_kind_has_the_same_columns_and_types(kind: type, record: object) -> None:
    empty = frame([], kind=kind)
    assert len(empty) == 0
    assert record is None or dtypes(empty) == dtypes(frame([record]))


def test_an_empty_list_of_no_known_kind_is_an_empty_frame() -> None:
    assert frame([]).empty


def test_any_dataclass_makes_rows() -> None:
    made = frame([GrepMatch("/a.md", 3, "SI units")])
    assert made.to_dict("records") == [{"path": "/a.md", "line": 3, "text": "SI units"}]


@dataclass(frozen=True)
class Started:
    type: ClassVar[str] = "started"
    run_id: str


@dataclass(frozen=True)
class Returned:
    type: ClassVar[str] = "returned"
    seconds: float
    arguments: Mapping[str, Any]
    by: Actor | None = None


def test_events_of_several_kinds_share_one_frame() -> None:
    made = frame([Started("run_1"), Returned(0.5, {"path": "/a"}, Actor("user_actor", "user_ann"))])
    assert list(made.columns) == ["type", "run_id", "seconds", "arguments", "by_type", "by_id"]
    assert list(made["type"]) == ["started", "returned"]
    assert made.loc[1, "arguments"] == {"path": "/a"}
    assert made["by_id"].isna().tolist() == [True, False]


@dataclass(frozen=True)
class Priced:
    price: Decimal
    turn: int


def test_annotations_that_only_the_type_checker_knows_do_no_harm() -> None:
    made = frame([Priced("1.5", 2)])  # pyright: ignore[reportArgumentType]  # any value: its type is not there to be read
    assert made.to_dict("records") == [{"price": "1.5", "turn": 2}]


@dataclass(frozen=True)
class Loose:
    value: int | str
    flag: bool | None


def test_a_field_of_several_types_stays_as_it_is() -> None:
    made = frame([Loose(1, None), Loose("one", True)])
    assert list(made["value"]) == [1, "one"]
    assert dtypes(made)["flag"] == "boolean"


def test_a_generator_of_records_is_taken_too() -> None:
    assert len(frame(record for record in (WRITTEN, REDACTED))) == 2


def test_ten_thousand_versions_become_a_frame() -> None:
    made = frame([WRITTEN, REDACTED] * 5_000)
    assert len(made) == 10_000
    assert made["seq"].sum() == 15_000
