"""Runs and their events, and what leads from a change to its tool call and back (CONTRACT 0.3, rows 24 and 25)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from types import MappingProxyType
from typing import Any

import psycopg
import pytest

from memkernel import ids
from memkernel.errors import (
    InvalidInputError,
    InvalidPageError,
    RunNotFoundError,
    RunRunningError,
    RunTakenOverError,
    StoreNotFoundError,
    VersionNotFoundError,
)
from memkernel.models import Cause, Change, MemoryStore, RunEvent, RunRecord, Usage
from memkernel.store import Database
from memkernel.store.run_processes import RunProcess, this_process
from tests.store.people import ANN

ELSEWHERE = str(RunProcess("elsewhere", "its boot", "pid:[1]", 1, "1"))
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def session_id() -> str:
    """A session of the test's own, for the shared database."""
    return ids.mint("sesn")


@pytest.fixture
def begin(database: Database, session_id: str) -> Callable[..., RunRecord]:
    """Begin a run in the test's session."""

    def begin(**given: Any) -> RunRecord:
        fields: dict[str, Any] = {
            "session_id": session_id,
            "kind": "live",
            "model": "claude-sonnet-5-5",
            "prompt": "Tidy the notes",
            "process": this_process(),
        }
        return database.runs.begin(ids.mint("run"), **{**fields, **given})

    return begin


def append(database: Database, run: RunRecord, events: Sequence[RunEvent] = (), **given: Any) -> bool:
    fields: dict[str, Any] = {
        "session_id": run.session_id,
        "process": this_process(),
        "turns": 1,
        "usage": Usage(10, 5, 3, 2),
        "cost_usd": 0.25,
    }
    return database.runs.append(run.id, events, **{**fields, **given})


def event(n: int, kind: str = "text_delta", /, **data: Any) -> RunEvent:
    return happened(n, data, kind)


def happened(n: int, data: dict[str, Any], kind: str = "text_delta") -> RunEvent:
    return RunEvent(n, kind, data, NOON + timedelta(seconds=n))


def test_a_run_that_begins_is_running(database: Database, begin: Callable[..., RunRecord], session_id: str) -> None:
    run = begin(memory_store_ids=["memstore_b", "memstore_a"])
    assert run == database.runs.retrieve(run.id)
    assert (run.status, run.turns, run.usage, run.cost_usd) == ("running", 0, Usage(), None)
    assert (run.kind, run.model, run.prompt) == ("live", "claude-sonnet-5-5", "Tidy the notes")
    assert (run.session_id, run.memory_store_ids) == (session_id, ("memstore_b", "memstore_a"))
    assert (run.previous_run_id, run.error, run.stop_reason, run.ended_at) == (None, "", None, None)
    assert run.started_at == run.seen_at
    assert database.runs.events(run.id) == []
    assert database.runs.messages(run.id) is None


def test_what_happens_is_kept_in_order_with_how_the_run_stands(
    database: Database, begin: Callable[..., RunRecord]
) -> None:
    run = begin()
    assert not append(database, run, [event(1, "run_started", prompt="Tidy"), event(2, "replied", content=[{"a": 1}])])
    assert not append(database, run, [event(3, "tool_called", name="memory")], turns=2, usage=Usage(20, 10, 6, 4))
    assert database.runs.events(run.id) == [
        event(1, "run_started", prompt="Tidy"),
        event(2, "replied", content=[{"a": 1}]),
        event(3, "tool_called", name="memory"),
    ]
    assert [each.n for each in database.runs.events(run.id, after=1, limit=1)] == [2]
    stands = database.runs.retrieve(run.id)
    assert (stands.turns, stands.usage, stands.cost_usd) == (2, Usage(20, 10, 6, 4), 0.25)
    assert stands.seen_at > run.seen_at
    assert stands.ended_at is None


def test_a_run_that_ends_has_a_time_of_its_end(database: Database, begin: Callable[..., RunRecord]) -> None:
    run = begin()
    append(database, run, status="error", stop_reason="end_turn", error="it broke", cost_usd=None)
    ended = database.runs.retrieve(run.id)
    assert (ended.status, ended.stop_reason, ended.error, ended.cost_usd) == ("error", "end_turn", "it broke", None)
    assert ended.ended_at == ended.seen_at


def test_the_same_twice_is_kept_once(database: Database, begin: Callable[..., RunRecord], session_id: str) -> None:
    run = begin()
    for _ in range(2):
        append(database, run, [event(1, text="one"), event(2, text="two")])
    append(database, run, [event(2, text="another"), event(3)])
    assert database.runs.events(run.id) == [event(1, text="one"), event(2, text="two"), event(3)]
    again = database.runs.begin(
        run.id, session_id=session_id, kind="live", model="other", prompt="other", process=ELSEWHERE
    )
    assert again == database.runs.retrieve(run.id)
    assert again.prompt == "Tidy the notes"


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "x\udfffy", "é ☃ 😀", '"\\u0000"', "\x7f\x1b"])
def test_every_text_of_an_event_and_of_a_conversation_survives(
    database: Database, begin: Callable[..., RunRecord], text: str
) -> None:
    start = [{"role": "user", "content": text}]
    run = begin(prompt=text, messages=start, previous_run_id=ids.mint("run"))
    append(database, run, [happened(1, {"text": text, text: [text]})], error=text)
    assert database.runs.events(run.id) == [happened(1, {"text": text, text: [text]})]
    assert database.runs.messages(run.id) == start
    readable = text.replace("\0", "\ufffd").replace("\ud800", "\ufffd").replace("\udfff", "\ufffd")
    kept = database.runs.retrieve(run.id)
    assert (kept.prompt, kept.error) == (readable, readable)


def test_the_order_of_keys_and_large_numbers_survive(database: Database, begin: Callable[..., RunRecord]) -> None:
    run = begin()
    given = {"z": 1, "a": 10**30, "m": {"y": 0.1, "b": -0.0}, "nothing": None}
    append(database, run, [happened(1, given)])
    (kept,) = database.runs.events(run.id)
    assert repr(dict(kept.data)) == repr(given)


def test_a_number_that_json_does_not_have_becomes_null(database: Database, begin: Callable[..., RunRecord]) -> None:
    run = begin()
    append(database, run, [event(1, input={"a": [float("nan"), 1.5], "b": float("inf"), "c": (float("-inf"),)})])
    assert database.runs.events(run.id)[0].data == {"input": {"a": [None, 1.5], "b": None, "c": [None]}}


def test_a_mapping_of_any_kind_is_an_object(database: Database, begin: Callable[..., RunRecord]) -> None:
    run = begin()
    append(database, run, [RunEvent(1, "replied", MappingProxyType({"a": (MappingProxyType({"b": 1}),)}), NOON)])
    assert database.runs.events(run.id)[0].data == {"a": [{"b": 1}]}


def test_what_is_no_json_is_refused_and_nothing_is_written(database: Database, begin: Callable[..., RunRecord]) -> None:
    run = begin()
    endless: list[Any] = []
    endless.append(endless)
    for thing in (object(), {1, 2}, b"bytes", endless):
        with pytest.raises(InvalidInputError, match="kept as JSON"):
            append(database, run, [event(1), event(2, thing=thing)])
    assert database.runs.events(run.id) == []


# -- whose it is -----------------------------------------------------------------------------------


def test_a_run_of_a_machine_that_cannot_be_looked_at_is_lost_when_it_was_quiet_for_long(
    database: Database, begin: Callable[..., RunRecord], shared_dsn: str
) -> None:
    run, here = begin(process=ELSEWHERE), this_process()
    with pytest.raises(RunRunningError, match=r"is still running: its process wrote to it 0 s ago"):
        database.runs.take_over(run.id, here)
    assert run.id not in database.runs.mark_lost()
    with psycopg.connect(shared_dsn) as admin:
        admin.execute("UPDATE memkernel.runs SET seen_at = now() - interval '601 s' WHERE id = %s", [run.id])
    assert database.runs.take_over(run.id, here).status == "lost"
    with pytest.raises(RunTakenOverError):
        append(database, run, process=ELSEWHERE)


def test_a_run_goes_on_or_is_taken_over_but_never_both(
    database: Database, begin: Callable[..., RunRecord], shared_dsn: str
) -> None:
    """A process that was taken for gone writes at the same moment."""
    written: list[int] = []

    def write(run: RunRecord) -> None:
        for n in count(1):
            try:
                append(database, run, [event(n)], process=ELSEWHERE)
            except RunTakenOverError:
                return
            written.append(n)

    for _ in range(10):
        run = begin(process=ELSEWHERE)
        written.clear()
        with ThreadPoolExecutor(1) as threads, psycopg.connect(shared_dsn, autocommit=True) as admin:
            writing = threads.submit(write, run)
            taken = False
            while not taken:
                admin.execute("UPDATE memkernel.runs SET seen_at = '2026-01-01' WHERE id = %s", [run.id])
                with suppress(RunRunningError):
                    taken = database.runs.take_over(run.id, this_process()).status == "lost"
            writing.result()
        assert [each.n for each in database.runs.events(run.id)] == written


def test_what_a_lost_run_had_sent_is_not_saved_after_somebody_asked(
    database: Database, begin: Callable[..., RunRecord], store: MemoryStore, shared_dsn: str
) -> None:
    run = begin(process=ELSEWHERE)
    cause = Cause(run.id, "toolu_1")
    database.memories.write(store.id, "/a.md", "one", actor=ANN, cause=cause)
    with psycopg.connect(shared_dsn, autocommit=True) as admin:
        admin.execute("UPDATE memkernel.runs SET seen_at = '2026-01-01' WHERE id = %s", [run.id])
    assert run.id in database.runs.mark_lost()
    head = database.memory_stores.retrieve(store.id).head_seq
    memories = database.memories
    for late in (
        lambda: memories.write(store.id, "/a.md", "late", actor=ANN, cause=cause),
        lambda: memories.create(store.id, path="/late.md", content="", actor=ANN, cause=cause),
        lambda: memories.delete_tree(store.id, "/a.md", actor=ANN, cause=cause),
        lambda: memories.rename_tree(store.id, "/a.md", "/late.md", actor=ANN, cause=cause),
        lambda: memories.apply(store.id, [Change("/late.md", "")], actor=ANN, cause=cause),
    ):
        with pytest.raises(RunTakenOverError, match=run.id):
            late()
    assert database.memory_stores.retrieve(store.id).head_seq == head
    assert database.memories.at_path(store.id, "/a.md").content == "one"
    assert database.runs.is_saved(store.id, run.id, "toolu_1")


def test_whether_a_call_is_saved_is_answered_when_what_is_under_way_has_ended(
    database: Database, store: MemoryStore, shared_dsn: str
) -> None:
    for commits in (True, False):
        cause = Cause(ids.mint("run"), "toolu_1")
        with psycopg.connect(shared_dsn) as writer, ThreadPoolExecutor(1) as threads:
            writer.execute(
                "SELECT memkernel.memory_write(%s, '/a.md', '{}', %s, sha256(%s), NULL, false, %s, %s, 2000, "
                "'user_actor', 'user_ann', %s, %s)",
                [store.id, *[cause.run_id.encode()] * 2, ids.mint("mem"), ids.mint("memver"), cause.run_id, "toolu_1"],
            )
            asked = threads.submit(database.runs.is_saved, store.id, cause.run_id, cause.tool_use_id)
            with psycopg.connect(shared_dsn, autocommit=True) as admin:
                waiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
                while not admin.execute(waiting).fetchall():
                    assert not asked.done()
            writer.commit() if commits else writer.rollback()
            assert asked.result() is commits


def test_a_run_that_has_ended_is_taken_over_as_it_is(database: Database, begin: Callable[..., RunRecord]) -> None:
    run = begin()
    append(database, run, [event(1)], status="done")
    before = database.runs.retrieve(run.id)
    assert database.runs.take_over(run.id, ELSEWHERE) == before
    with pytest.raises(RunTakenOverError) as taken:
        append(database, run, [event(2)])
    assert taken.value.run == run.id
    assert database.runs.events(run.id) == [event(1)]


def test_a_run_that_lives_is_not_taken_over_or_deleted(database: Database, begin: Callable[..., RunRecord]) -> None:
    run = begin()
    for refused in (lambda: database.runs.take_over(run.id, ELSEWHERE), lambda: database.runs.delete(run.id)):
        with pytest.raises(RunRunningError, match=run.id) as running:
            refused()
        assert "%agent stop" in running.value.hint
    assert not append(database, run, [event(1)])


def test_a_stop_that_was_asked_for_is_told_with_the_next_write(
    database: Database, begin: Callable[..., RunRecord]
) -> None:
    run = begin()
    assert database.runs.ask_stop(run.id) == run
    assert append(database, run, [event(1)])
    append(database, run, status="stopped")
    assert database.runs.ask_stop(run.id).status == "stopped"


def test_a_run_that_goes_on_says_so_and_hears_of_a_stop_without_anything_to_write(
    database: Database, begin: Callable[..., RunRecord]
) -> None:
    run = begin()

    def lives(process: str = "") -> bool:
        return database.runs.lives(run.id, session_id=run.session_id, process=process or this_process())

    assert not lives()
    seen = database.runs.retrieve(run.id)
    assert seen == replace(run, seen_at=seen.seen_at)
    assert seen.seen_at > run.seen_at
    database.runs.ask_stop(run.id)
    assert lives()
    append(database, run, status="stopped")
    ended = database.runs.retrieve(run.id)
    assert not lives()
    assert not lives(ELSEWHERE)
    assert database.runs.retrieve(run.id) == ended


def test_nobody_says_of_a_run_of_another_process_that_it_goes_on(
    database: Database, begin: Callable[..., RunRecord]
) -> None:
    run = begin(process=ELSEWHERE)
    database.runs.ask_stop(run.id)
    assert not database.runs.lives(run.id, session_id=run.session_id, process=this_process())
    assert database.runs.retrieve(run.id) == run


def test_a_run_that_is_deleted_is_gone_with_all_that_happened(
    database: Database, begin: Callable[..., RunRecord]
) -> None:
    run = begin()
    append(database, run, [event(1)], status="done")
    database.runs.delete(run.id)
    for absent in (
        lambda: database.runs.retrieve(run.id),
        lambda: database.runs.events(run.id),
        lambda: database.runs.messages(run.id),
        lambda: database.runs.delete(run.id),
        lambda: database.runs.ask_stop(run.id),
        lambda: database.runs.take_over(run.id, ELSEWHERE),
        lambda: append(database, run),
    ):
        with pytest.raises(RunNotFoundError, match=run.id):
            absent()


def test_closing_a_lost_run_does_not_move_its_end(
    database: Database, begin: Callable[..., RunRecord], shared_dsn: str
) -> None:
    run = begin(process=ELSEWHERE)
    with psycopg.connect(shared_dsn, autocommit=True) as admin:
        admin.execute("UPDATE memkernel.runs SET seen_at = '2026-01-01 12:00Z' WHERE id = %s", [run.id])
    lost = database.runs.take_over(run.id, this_process())
    append(database, run, [event(1, "run_ended")], status="lost", error="its process ended")
    closed = database.runs.retrieve(run.id)
    assert (closed.status, closed.ended_at) == ("lost", lost.ended_at)
    assert lost.ended_at == datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_nobody_waits_for_the_disk_while_a_run_runs_but_its_end_is_safe(
    database: Database, begin: Callable[..., RunRecord], shared_dsn: str
) -> None:
    run = begin()
    append_to = (
        "SELECT memkernel.run_append(%s, %s, %s, '{}', '{}', '{}', '{}', 1, 1, 1, 1, 1, NULL, %s, NULL, ''), "
        "current_setting('synchronous_commit')"
    )
    with psycopg.connect(shared_dsn) as connection:
        waits = connection.execute("SHOW synchronous_commit").fetchone()
        for status, expected in (("running", ("off",)), ("done", waits)):
            values = [run.session_id, run.id, this_process(), status]
            row = connection.execute(append_to, values).fetchone()
            assert row is not None
            assert row[1:] == expected
            connection.commit()
            assert connection.execute("SHOW synchronous_commit").fetchone() == waits


# -- listing ---------------------------------------------------------------------------------------


def test_runs_are_listed_newest_first_page_by_page(
    database: Database, begin: Callable[..., RunRecord], session_id: str
) -> None:
    runs = [begin(prompt=str(number)) for number in range(5)]
    found: list[RunRecord] = []
    page = None
    while True:
        part = database.runs.list(session_id=session_id, limit=2, page=page)
        found += part.data
        page = part.next_page
        if page is None:
            break
    assert found == runs[::-1]
    with pytest.raises(InvalidPageError):
        database.runs.list(page=database.runs.list(session_id=session_id, limit=2).next_page)


def test_runs_are_listed_by_store_status_and_time(
    database: Database, begin: Callable[..., RunRecord], session_id: str
) -> None:
    first, second = begin(memory_store_ids=["memstore_x", session_id]), begin(memory_store_ids=["memstore_y"])
    append(database, first, status="done")
    assert [run.id for run in database.runs.list(memory_store_id=session_id).data] == [first.id]
    assert [run.id for run in database.runs.list(session_id=session_id, status="done").data] == [first.id]
    assert [run.id for run in database.runs.list(session_id=session_id, since=second.started_at).data] == [second.id]
    with pytest.raises(InvalidInputError, match="status is 'going'"):
        database.runs.list(status="going")  # pyright: ignore[reportArgumentType] # that is the test


# -- between a change and its call -----------------------------------------------------------------


def test_a_change_leads_to_its_call_and_back(database: Database, store: MemoryStore) -> None:
    run_id = ids.mint("run")
    calls = [Cause(run_id, "toolu_1"), Cause(run_id, "toolu_2"), None, Cause("run_other", "toolu_1")]
    for number, cause in enumerate(calls):
        database.memories.write(store.id, "/a.md", str(number), actor=ANN, cause=cause)
    database.memories.write(store.id, "/b.md", "text", actor=ANN, cause=calls[0])
    versions = database.memory_versions.list(store.id).data[::-1]
    assert [database.memory_versions.cause(store.id, version.id) for version in versions] == [*calls, calls[0]]
    assert database.memory_versions.causes(store.id, [1, 2, 3, 4, 5, 99]) == {
        1: calls[0], 2: calls[1], 4: calls[3], 5: calls[0],
    }  # fmt: skip
    by_call = database.memory_versions.changes_by_call(store.id, run_id)
    assert {call: [version.id for version in made] for call, made in by_call.items()} == {
        "toolu_1": [versions[0].id, versions[4].id],
        "toolu_2": [versions[1].id],
    }
    assert database.memory_versions.changes_by_call(store.id, "run_unknown") == {}


def test_the_runs_that_may_have_read_a_text_are_those_that_made_it_or_worked_while_it_was_current(
    database: Database, begin: Callable[..., RunRecord], store: MemoryStore
) -> None:
    def ended(**given: Any) -> str:
        run = begin(**given)
        append(database, run, status="done")
        return run.id

    mine = {"memory_store_ids": [ids.mint("memstore"), store.id]}
    before, spanning = ended(**mine), begin(**mine).id
    database.memories.write(store.id, "/other.md", "text", actor=ANN)
    maker = ended()  # of a store that its record does not name
    database.memories.write(store.id, "/a.md", "secret", actor=ANN, cause=Cause(maker, "toolu_1"))
    reader, elsewhere = ended(**mine), ended()
    database.memories.write(store.id, "/a.md", "nothing", actor=ANN)
    after = ended(**mine)
    database.memories.delete_tree(store.id, "/a.md", actor=ANN)
    versions = database.memory_versions.list(store.id, path="/a.md").data[::-1]
    secret, nothing, gone = (database.runs.of_version(store.id, version.id) for version in versions)
    assert secret == [reader, maker, spanning]
    assert nothing == [after, spanning]
    assert not {before, elsewhere} & {*secret, *nothing, *gone}
    database.memory_versions.redact(versions[0].id, memory_store_id=store.id, actor=ANN)
    assert database.runs.of_version(store.id, versions[0].id) == secret
    assert database.runs.of_version(store.id, ids.mint("memver")) == []


def test_what_has_no_cause_because_it_is_not_there(database: Database, store: MemoryStore) -> None:
    unknown = ids.mint("memstore")
    with pytest.raises(VersionNotFoundError):
        database.memory_versions.cause(store.id, ids.mint("memver"))
    for absent in (
        lambda: database.memory_versions.cause(unknown, ids.mint("memver")),
        lambda: database.memory_versions.changes_by_call(unknown, "run_1"),
        lambda: database.runs.is_saved(unknown, "run_1", "toolu_1"),
    ):
        with pytest.raises(StoreNotFoundError):
            absent()


def test_whether_a_call_is_saved(database: Database, store: MemoryStore) -> None:
    database.memories.write(store.id, "/a.md", "text", actor=ANN, cause=Cause("run_1", "toolu_1"))
    assert database.runs.is_saved(store.id, "run_1", "toolu_1")
    assert not database.runs.is_saved(store.id, "run_1", "toolu_2")
    assert not database.runs.is_saved(store.id, "run_2", "toolu_1")
