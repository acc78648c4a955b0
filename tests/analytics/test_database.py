"""SQL over a real database."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memkernel import ids
from memkernel.analytics.engine import Engine
from memkernel.analytics.sql import query
from memkernel.errors import DatabaseError, QueryRefusedError
from memkernel.models import Actor, Cause, MemoryStore, RunEvent, Usage
from memkernel.store import Database
from memkernel.store.run_processes import this_process

ANN = Actor("user_actor", "user_ann")
AGENT = Actor("session_actor", "sesn_1")


@pytest.fixture
def notes(database: Database) -> MemoryStore:
    """A store with a memory of three versions, one of an empty text, and one that was deleted."""
    store = database.memory_stores.create(name="Team notes", metadata={"team": "é"})
    write = database.memories.write
    write(store.id, "/units.md", "imperial", actor=ANN)
    write(store.id, "/units.md", "SI\0 units\n", actor=AGENT, cause=Cause("run_1", "toolu_1"))
    write(store.id, "/units.md", "SI", actor=ANN)
    write(store.id, "/notes/été.md", "", actor=ANN)
    write(store.id, "/old.md", "old", actor=ANN)
    database.memories.delete_tree(store.id, "/old.md", actor=ANN)
    return store


def test_memories_have_their_heads_content(database: Database, notes: MemoryStore) -> None:
    result = query(database, "SELECT path, content FROM memories ORDER BY path")
    assert result.rows == [("/notes/été.md", ""), ("/units.md", "SI")]


def test_every_column_of_every_table_has_the_records_value(database: Database, notes: MemoryStore) -> None:
    [memory] = query(database, "SELECT * FROM memories WHERE path = '/units.md'").df().to_dict("records")
    record = database.memories.at_path(notes.id, "/units.md")
    assert {name: memory[name] for name in ("id", "path", "content", "content_sha256", "content_size_bytes")} == {
        name: getattr(record, name) for name in ("id", "path", "content", "content_sha256", "content_size_bytes")
    }
    assert memory["memory_store_id"] == notes.id
    assert memory["updated_at"] == record.updated_at


def test_a_version_is_seen_as_its_record(database: Database, notes: MemoryStore) -> None:
    sql = """
        SELECT id, memory_store_id, memory_id, seq, ordinal, operation, path, content, content_sha256,
               content_size_bytes, created_at, created_by_type, created_by_id, redacted_at, redacted_by_id
        FROM memory_versions ORDER BY seq
    """
    versions = database.memory_versions.list(notes.id, view="full").data
    assert query(database, sql).rows == [
        (
            version.id, version.memory_store_id, version.memory_id, version.seq, version.ordinal, version.operation,
            version.path, version.content, version.content_sha256, version.content_size_bytes, version.created_at,
            version.created_by and version.created_by.type, version.created_by and version.created_by.id, None, None,
        )
        for version in reversed(versions)
    ]  # fmt: skip


def test_a_content_with_a_nul_is_whole(database: Database, notes: MemoryStore) -> None:
    result = query(database, "SELECT content, length(content) FROM memory_versions WHERE seq = 2")
    assert result.rows == [("SI\0 units\n", 10)]


def test_times_are_aware_utc_datetimes(database: Database, notes: MemoryStore) -> None:
    [(created_at, day)] = query(database, "SELECT created_at, created_at::DATE FROM memory_stores").rows
    assert created_at == notes.created_at
    assert created_at.utcoffset() == UTC.utcoffset(None)
    assert day == notes.created_at.date()


def test_metadata_is_json(database: Database, notes: MemoryStore) -> None:
    assert query(database, "SELECT metadata->>'team' FROM memory_stores").rows == [("é",)]


def test_a_version_leads_to_the_tool_call_that_made_it(database: Database, notes: MemoryStore) -> None:
    sql = (
        "SELECT v.path, c.run_id, c.tool_use_id FROM run_changes c JOIN memory_versions v USING (memory_store_id, seq)"
    )
    assert query(database, sql).rows == [("/units.md", "run_1", "toolu_1")]


def test_a_redacted_text_is_gone_at_once(database: Database, notes: MemoryStore) -> None:
    sql = "SELECT id, path, content, redacted_by_id FROM memory_versions WHERE seq = 1"
    [(version_id, _, content, _)] = query(database, sql).rows
    assert content == "imperial"
    database.memory_versions.redact(version_id, memory_store_id=notes.id, actor=ANN)
    assert query(database, sql).rows == [(version_id, None, None, "user_ann")]


def test_every_query_sees_what_was_written_before_it(database: Database, notes: MemoryStore) -> None:
    sql = "SELECT count(*) FROM memory_versions"
    before = query(database, sql).rows[0][0]
    database.memories.write(notes.id, "/new.md", "new", actor=ANN)
    assert query(database, sql).rows == [(before + 1,)]
    database.memory_stores.delete(notes.id)
    assert query(database, sql).rows == [(0,)]


def test_a_query_sees_the_tables_at_one_moment(database: Database, notes: MemoryStore) -> None:
    sql = """
        SELECT count(*) FROM memories m LEFT JOIN memory_versions v
        ON v.memory_store_id = m.memory_store_id AND v.id = m.memory_version_id WHERE v.id IS NULL
    """
    assert query(database, sql).rows == [(0,)]


def test_a_query_that_is_stopped_while_it_loads_leaves_the_pool_whole(dsn: str) -> None:
    """Fault 22: there is one connection, and the next call gets it."""
    with Database(dsn, max_connections=1) as database:
        store = database.memory_stores.create(name="Notes")
        for number in range(3):
            database.memories.write(store.id, f"/{number}.md", "text", actor=ANN)
        engine = Engine()
        engine.stop()
        with pytest.raises(KeyboardInterrupt) as stopped:
            engine.answer(database, "FROM memory_versions", None)
        assert len(database.memories.entries(store.id)) == 3
        assert query(database, "SELECT count(*) FROM memory_versions").rows == [(3,)]
        assert stopped.traceback, "which holds what was being read"


def test_an_empty_database_has_empty_tables(database: Database) -> None:
    assert query(database, "SELECT max(seq), count(*) FROM memory_versions").rows == [(None, 0)]
    assert query(database, "SELECT * FROM memories JOIN memory_stores ON true").rows == []


def test_what_was_refused_changed_nothing(database: Database, notes: MemoryStore) -> None:
    with pytest.raises(QueryRefusedError):
        query(database, "DELETE FROM memory_versions")
    assert query(database, "SELECT count(*) FROM memory_versions").rows == [(6,)]


def test_postgresql_that_refuses_is_its_own_error(database: Database) -> None:
    class Broken:
        def dump(self, tables: object) -> object:
            raise DatabaseError("PostgreSQL refused: out of luck")

    with pytest.raises(DatabaseError, match="out of luck"):
        query(Broken(), "FROM memories")  # pyright: ignore[reportArgumentType]  # it never gives rows


def test_a_run_and_what_happened_in_it_are_seen(database: Database, notes: MemoryStore) -> None:
    run_id, session_id, noon = ids.mint("run"), ids.mint("sesn"), datetime(2026, 11, 30, 12, tzinfo=UTC)
    database.runs.begin(
        run_id,
        session_id=session_id,
        kind="live",
        model="claude-sonnet-5-5",
        prompt="Tidy\0",
        memory_store_ids=[notes.id],
        process=this_process(),
    )
    events = [
        RunEvent(1, "tool_called", {"name": "memory", "input": {"command": "view"}}, noon),
        RunEvent(2, "tool_returned", {"content": "a\0b \ud800 é"}, noon),
    ]
    usage = Usage(10, 5, 3, 2)
    database.runs.append(
        run_id, events, session_id=session_id, process=this_process(), turns=1, usage=usage, cost_usd=0.25
    )
    sql = (
        "SELECT id, prompt, json_extract_string(memory_store_ids, '$[0]'), input_tokens + output_tokens, cost_usd, "
        "status, ended_at FROM runs"
    )
    assert query(database, sql).rows == [(run_id, "Tidy\ufffd", notes.id, 15, 0.25, "running", None)]
    sql = "SELECT n, type, data->>'$.name', data->>'$.content', created_at FROM run_events ORDER BY n"
    assert query(database, sql).rows == [
        (1, "tool_called", "memory", None, noon),
        (2, "tool_returned", None, "a\0b \ufffd é", noon),
    ]
    assert len(query(database, "SELECT * FROM runs JOIN run_events ON run_id = id").df()) == 2
