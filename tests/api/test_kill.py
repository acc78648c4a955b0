"""The server is killed under load, again and again: what it has acknowledged is there, and no change by halves."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPException
from typing import Any, Final

import psycopg
import pytest

from tests.api.calls import Caller, Json, at
from tests.fix_postgres import DURABLE, PostgresServer
from tests.fix_server import MemoryServer
from tests.runtime.processes import wait_until

KILLS: Final = 20
WRITERS: Final = 4

# Each row is something that no whole change leaves behind.
_HALVES: Final = """
SELECT 'count', s.id FROM memkernel.memory_stores s
 WHERE s.memory_count <> (SELECT count(*) FROM memkernel.memories m WHERE m.memory_store_id = s.id)
UNION ALL
SELECT 'seq', s.id FROM memkernel.memory_stores s
 WHERE ARRAY(SELECT v.seq FROM memkernel.memory_versions v WHERE v.memory_store_id = s.id ORDER BY v.seq)
       <> ARRAY(SELECT generate_series(1, s.head_seq))
UNION ALL
SELECT 'head', m.id FROM memkernel.memories m JOIN LATERAL (
    SELECT * FROM memkernel.memory_versions v WHERE v.memory_store_id = m.memory_store_id AND v.memory_id = m.id
    ORDER BY v.seq DESC LIMIT 1) last ON true
 WHERE (last.id, last.path, last.content_sha256) <> (m.memory_version_id, m.path, m.content_sha256)
    OR last.content_sha256 <> sha256(last.content)
UNION ALL
SELECT 'end', v.id FROM memkernel.memory_versions v WHERE v.operation <> 'deleted' AND NOT EXISTS (
    SELECT FROM memkernel.memories m WHERE m.memory_store_id = v.memory_store_id AND m.id = v.memory_id)
   AND NOT EXISTS (SELECT FROM memkernel.memory_versions later
    WHERE later.memory_store_id = v.memory_store_id AND later.memory_id = v.memory_id AND later.seq > v.seq)
"""
_TEXTS: Final = """
SELECT m.path, convert_from(v.content, 'UTF8') FROM memkernel.memories m
  JOIN memkernel.memory_versions v ON v.memory_store_id = m.memory_store_id AND v.id = m.memory_version_id
 WHERE m.memory_store_id = %s
"""


class Writer:
    """Creates, changes, renames and deletes memories of a store of its own, until the server is gone.

    Attributes:
        texts: by path, as acknowledged.
        versions: the ids of all that were acknowledged.
        open: what the request that was not answered would have made of `texts`.
    """

    def __init__(self, call: Caller) -> None:
        self._call = call
        self.store = call.store("Killed")
        self._random = random.Random(self.store)
        self.texts: dict[str, str] = {}
        self.versions: list[str] = []
        self.open: dict[str, str] = {}
        self._memories: dict[str, Json] = {}
        self._number = 0

    def write_until_the_end(self) -> None:
        """One change after the other."""
        try:
            while True:
                self._change()
        except (OSError, HTTPException):
            return

    def _change(self) -> None:
        self._number += 1
        path, text = f"/{self._random.randrange(12)}.md", f"{self._number} " * self._random.randrange(1, 400)
        known = self._memories.get(path)
        if known is None:
            self._acknowledge(path, {**self.texts, path: text}, lambda: self._call.memory(self.store, path, text))
            return
        kind = self._random.choice(["update", "update", "rename", "delete"])
        other = f"/renamed-{self._number}.md"
        rest = {name: content for name, content in self.texts.items() if name != path}
        if kind == "update":
            guard = {"type": "content_sha256", "content_sha256": known["content_sha256"]}
            self._acknowledge(
                path, {**rest, path: text}, lambda: self._call.update(known, content=text, precondition=guard).ok
            )
        elif kind == "rename":
            self._memories.pop(path)
            self._acknowledge(other, {**rest, other: self.texts[path]}, lambda: self._call.update(known, path=other).ok)
        else:
            self._memories.pop(path)
            self._acknowledge("", rest, lambda: self._call.delete(known).ok)

    def _acknowledge(self, path: str, after: dict[str, str], change: Callable[[], Json]) -> None:
        self.open = after
        answer = change()
        self.texts = after
        if path:
            self._memories[path] = answer
            self.versions.append(answer["memory_version_id"])

    def look(self, observer: psycopg.Connection[Any]) -> None:
        """What is there is what was acknowledged, with or without the change that was not answered."""
        found = dict(observer.execute(_TEXTS, [self.store]).fetchall())
        assert found in (self.texts, self.open)
        self.texts = found
        self._memories = {memory["path"]: memory for memory in self._call.all(f"{at(self.store)}/memories")}
        assert self._memories.keys() == found.keys()


@pytest.fixture
def durable() -> Iterator[PostgresServer]:
    """A PostgreSQL that syncs each commit, as the embedded one does."""
    server = PostgresServer(18, DURABLE)
    yield server
    server.remove()


def test_a_server_that_is_killed_twenty_times_has_all_that_it_acknowledged(durable: PostgresServer) -> None:
    dsn = durable.dsn(durable.create_migrated_database())
    dice = random.Random(20)
    with MemoryServer(dsn) as server, psycopg.connect(dsn, autocommit=True) as observer:
        writers = [Writer(Caller(server.dispatch, {"x-api-key": "any"})) for _ in range(WRITERS)]
        for _ in range(KILLS):
            _kill_under_load(server, writers, after=dice.randrange(5, 60))
            wait_until(lambda: _others(observer) == 0)  # what was under way has ended, or was given up
            assert observer.execute(_HALVES).fetchall() == []
            server.start()
            for writer in writers:
                writer.look(observer)
        versions = [version for writer in writers for version in writer.versions]
        kept = observer.execute("SELECT count(*) FROM memkernel.memory_versions WHERE id = ANY (%s)", [versions])
        assert kept.fetchone() == (len(versions),)
        assert len(versions) > KILLS * WRITERS
        assert "Traceback" not in server.log


def _kill_under_load(server: MemoryServer, writers: list[Writer], after: int) -> None:
    before = sum(len(writer.versions) for writer in writers)
    threads = [threading.Thread(target=writer.write_until_the_end) for writer in writers]
    for thread in threads:
        thread.start()
    wait_until(lambda: sum(len(writer.versions) for writer in writers) >= before + after, 60)
    server.kill()
    for thread in threads:
        thread.join()


def _others(observer: psycopg.Connection[Any]) -> int:
    row = observer.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    ).fetchone()
    return row[0] if row else 0
