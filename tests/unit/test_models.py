"""The records: frozen, without surprises in their repr, and named as the SDK names them."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from inspect import getmembers, isclass
from typing import Any

import pytest

from memkernel import models
from memkernel.models import (
    ABSENT,
    Absent,
    Actor,
    Limits,
    Memory,
    MemoryPrefix,
    MemoryStore,
    MemoryVersion,
    Page,
    Settings,
)

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)

RECORDS: list[type[Any]] = [found for _, found in getmembers(models, isclass) if dataclasses.is_dataclass(found)]

SECRET = "hunter2"


def made(kind: type[Any]) -> Any:
    """A record whose every field has some value."""
    return kind(**{field.name: field.name for field in dataclasses.fields(kind)})


@pytest.mark.parametrize("kind", RECORDS)
def test_a_record_cannot_be_changed(kind: type[Any]) -> None:
    record = made(kind)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, dataclasses.fields(kind)[0].name, "other")


@pytest.mark.parametrize("kind", RECORDS)
def test_a_record_takes_no_other_attribute(kind: type[Any]) -> None:
    with pytest.raises((AttributeError, TypeError)):
        made(kind).other = 1


@pytest.mark.parametrize("kind", RECORDS)
def test_records_with_equal_fields_are_equal(kind: type[Any]) -> None:
    assert made(kind) == made(kind)
    assert dataclasses.replace(made(kind)) == made(kind)


@pytest.mark.parametrize("kind", [Memory, MemoryVersion])
def test_a_repr_leaves_out_the_text(kind: type[Any]) -> None:
    assert SECRET not in repr(dataclasses.replace(made(kind), content=SECRET))


def test_a_repr_of_the_settings_leaves_out_the_key() -> None:
    assert SECRET not in repr(Settings(api_key=SECRET))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (MemoryStore, "memory_store"),
        (Memory, "memory"),
        (MemoryPrefix, "memory_prefix"),
        (MemoryVersion, "memory_version"),
    ],
)
def test_a_record_says_its_type_as_the_api_does(kind: type[Any], name: str) -> None:
    assert kind.type == made(kind).type == name
    assert "type" not in {field.name for field in dataclasses.fields(kind)}


def test_an_actor_reads_as_its_id_and_can_be_a_key() -> None:
    ann = Actor("user_actor", "user_ann")
    assert str(ann) == "user_ann"
    assert {ann: 1}[Actor("user_actor", "user_ann")] == 1
    assert ann != Actor("session_actor", "user_ann")


def test_absent_is_one_value_and_no_text() -> None:
    assert ABSENT is Absent.ABSENT
    assert list(Absent) == [ABSENT]
    assert not isinstance(ABSENT, str)


def test_the_limits_are_the_contracts() -> None:
    """CONTRACT 0.3, row 5."""
    assert Limits() == Limits(memories_per_store=2_000, content_bytes=102_400, stores_per_session=8)


def test_a_page_carries_any_records() -> None:
    page = Page([MemoryPrefix("/notes/")], next_page=None)
    assert page.data[0].path == "/notes/"
