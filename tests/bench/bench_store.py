"""P7, P10-P12: the record layer against bare SQL on the same server, and against itself.

Run: `python -m tests.bench.bench_store [versions]`; the versions are those of P11's large store (1,000,000 take a
few minutes to make). Nothing here fails: the figures stand beside their targets. `unsynced_us` is ours again with
synchronous_commit=off, and `unsynced_peer_us` the peer: what it costs besides the disk's wait.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from struct import Struct
from typing import Any, Final

import psycopg
from psycopg.conninfo import make_conninfo

from memkernel import cluster, ids
from memkernel.models import Actor, Change, Memory
from memkernel.store import Database

Result = dict[str, Any]
Contenders = dict[str, Callable[[int], object]]

BURST: Final = 20
"""Calls of one contender in a row: a round trip is bimodal, by whether client and server share a processor."""
ANN: Final = Actor("user_actor", "user_ann")
WRITERS: Final = 32
FEW: Final = 10_000
MANY: Final = 1_000_000
MEMORIES: Final = 2_000
_UNSYNCED: Final = "-c synchronous_commit=off"
_LENGTH: Final = Struct("!i")


def run(many: int = 100_000) -> list[Result]:
    """One result for each work; P11 compares a store of 10,000 versions with one of `many`."""
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o755)  # as root, the server runs under another account
        server = cluster.EmbeddedCluster(home=f"{home}/memkernel")
        try:
            dsn = server.ensure()
            works = (_one_change, _batches, partial(_pages, many=many), _writers)
            return [result for work in works for result in work(dsn)]
        finally:
            server.stop()


# -- P7: one change --------------------------------------------------------------------------------


def _one_change(dsn: str) -> list[Result]:
    """A change of 1 KB with its version, against one bare INSERT and commit by libpq itself."""
    synced, unsynced = (_change_medians(target) for target in (dsn, make_conninfo(dsn, options=_UNSYNCED)))
    return [_change(work, synced, unsynced) for work in ("update", "write", "create")]


def _change(work: str, synced: dict[str, float], unsynced: dict[str, float]) -> Result:
    result = _result(
        "P7",
        f"{work} 1 KB with its version",
        1.3,
        peer="one bare INSERT and commit",
        ours_ns=synced[work],
        peer_ns=synced["bare"],
    )
    return {**result, "unsynced_us": _us(unsynced[work]), "unsynced_peer_us": _us(unsynced["bare"])}


def _change_medians(dsn: str) -> dict[str, float]:
    with Database(dsn) as database, psycopg.connect(dsn, autocommit=True) as bare:
        taken = _alternate(_changers(database, bare), 60 * BURST)
    return {name: statistics.median(times) for name, times in taken.items()}


def _changers(database: Database, bare: psycopg.Connection[Any]) -> Contenders:
    store = database.memory_stores.create(name="P7").id
    paths = [f"/d{number % 20}/{number}.md" for number in range(200)]
    memories = [database.memories.write(store, path, _text(path), actor=ANN) for path in paths]
    bare.execute('CREATE TABLE IF NOT EXISTS bare (id text COLLATE "C" PRIMARY KEY, content bytea)')
    bare.execute("ALTER TABLE bare ALTER content SET STORAGE EXTERNAL")
    bare.execute("VACUUM ANALYZE")
    bare.pgconn.prepare(b"bare", b"INSERT INTO bare VALUES ($1, $2)")
    numbers = itertools.count()
    made: list[Memory] = []

    def insert(_: int) -> None:
        content = _text(next(numbers)).encode()
        bare.pgconn.exec_prepared(b"bare", [ids.mint("memver").encode(), content], [1, 1], 1)

    def update(number: int) -> None:
        memory = memories[number % len(memories)]
        database.memories.update(memory.id, memory_store_id=store, content=_text(next(numbers)), actor=ANN)

    def write(number: int) -> None:
        database.memories.write(store, paths[number % len(paths)], _text(next(numbers)), actor=ANN)

    def create(_: int) -> None:
        number = next(numbers)
        made.append(database.memories.create(store, path=f"/new/{number}", content=_text(number), actor=ANN))

    return {"bare": insert, "update": update, "write": write, "create": create}


# -- P10: a batch ----------------------------------------------------------------------------------


def _batches(dsn: str, rounds: int = 9) -> list[Result]:
    """2,000 files of 4 KB in one transaction, against a bare COPY of their contents."""
    return [_batch(dsn, work, rounds) for work in ("edited", "new")]


def _batch(dsn: str, work: str, rounds: int) -> Result:
    medians = _batch_medians(dsn, work, rounds)
    result = _result(
        "P10",
        f"commit of {MEMORIES:,} {work} files of 4 KB",
        1.6,
        peer="a bare COPY of their contents",
        ours_ns=medians["ours"],
        peer_ns=medians["bare"],
    )
    return {**result, "unsynced_us": _us(medians["unsynced"])}


def _batch_medians(dsn: str, work: str, rounds: int) -> dict[str, float]:
    with ExitStack() as opened:
        bare = opened.enter_context(psycopg.connect(dsn, autocommit=True))
        databases = {
            "ours": opened.enter_context(Database(dsn)),
            "unsynced": opened.enter_context(Database(make_conninfo(dsn, options=_UNSYNCED))),
        }
        _make_bare(bare)
        taken: dict[str, list[int]] = {"bare": [], "ours": [], "unsynced": []}
        for number in range(rounds):
            changes = _changes(number)
            for name in random.sample(list(taken), len(taken)):
                if name == "bare":
                    call = partial(_copy_bare, bare, changes)
                else:
                    store = _store(databases[name], f"P10 {name} {work}", None if work == "edited" else number)
                    call = partial(databases[name].memories.apply, store, changes, actor=ANN)
                taken[name].append(_timed(call))
    return {name: statistics.median(times[1:]) for name, times in taken.items()}


def _changes(number: int) -> list[Change]:
    return [
        Change(f"/d{index % 40}/{index}.md", f"{number} {index} " + "some memory line of text here, 40 bytes\n" * 102)
        for index in range(MEMORIES)
    ]


def _store(database: Database, name: str, number: int | None) -> str:
    """A new store with this number, or the one without, which holds the files already."""
    store = database.memory_stores.get_or_create(name if number is None else f"{name} {number}")
    if number is None and store.head_seq == 0:
        database.memories.apply(store.id, _changes(-1), actor=ANN)
    return store.id


def _make_bare(connection: psycopg.Connection[Any]) -> None:
    connection.execute('CREATE TABLE IF NOT EXISTS bare_copy (id text COLLATE "C" PRIMARY KEY, content bytea)')
    connection.execute("ALTER TABLE bare_copy ALTER content SET STORAGE EXTERNAL")


def _copy_bare(connection: psycopg.Connection[Any], changes: Sequence[Change]) -> None:
    parts = [b"PGCOPY\n\xff\r\n\0" + bytes(8)]
    for change in changes:
        for_id, content = ids.mint("memver").encode(), str(change.content).encode()
        parts += (b"\0\x02", _LENGTH.pack(len(for_id)), for_id, _LENGTH.pack(len(content)), content)
    parts.append(b"\xff\xff")
    with connection.cursor().copy("COPY bare_copy FROM STDIN (FORMAT binary)") as copy:
        copy.write(b"".join(parts))


# -- P11: pages ------------------------------------------------------------------------------------


def _pages(dsn: str, many: int) -> list[Result]:
    """Pages of a store with many versions, against the same pages of one with few."""
    with _history(dsn, "few", FEW) as few, _history(dsn, "many", many) as large:
        taken = {name: (_pagers(*few)[name], _pagers(*large)[name]) for name in _pagers(*few)}
        results: list[Result] = []
        for name, (small_page, large_page) in taken.items():
            times = _alternate({"few": small_page, "many": large_page}, 15 * BURST)
            results.append(
                _result(
                    "P11",
                    f"{name} at {many:,} versions",
                    1.2,
                    peer=f"the same at {FEW:,}",
                    ours_ns=statistics.median(times["many"]),
                    peer_ns=statistics.median(times["few"]),
                )
            )
        return results


def _pagers(database: Database, store: str) -> Contenders:
    memories, versions = database.memories, database.memory_versions
    newest = versions.list(store, limit=1).data[0]
    deep = _token_after(database, store, newest.seq // 2)
    middle = versions.list(store, page=deep).data[0]
    return {
        "page of 100 memories": lambda _: memories.list(store, limit=100),
        "depth-1 page of the root": lambda _: memories.list(store, limit=100, depth=1),
        "depth-1 page of a directory": lambda _: memories.list(store, limit=100, depth=1, path_prefix="/d07/"),
        "page of 20 versions": lambda _: versions.list(store),
        "page of 20 versions, deep": lambda _: versions.list(store, page=deep),
        "page of a memory's versions": lambda _: versions.list(store, memory_id=middle.memory_id),
        "page of a session's versions": lambda _: versions.list(store, session_id="sesn_3"),
        "page of a rare operation": lambda _: versions.list(store, operation="created"),
        "page of a range in time": lambda _: versions.list(
            store, created_at_gte=middle.created_at, created_at_lte=newest.created_at
        ),
        "page of 20 versions with texts": lambda _: versions.list(store, view="full"),
        "a version by its id": lambda _: versions.retrieve(middle.id, memory_store_id=store),
    }


def _token_after(database: Database, store: str, seq: int) -> str:
    """The token of a page deep in the history, from a token of the first page."""
    from memkernel.store import pages

    binding = pages.binding(
        "memory_versions",
        store=store,
        view="basic",
        **dict.fromkeys(
            ("memory_id", "path", "operation", "session_actor", "api_actor", "user_actor", "service_account_actor")
        ),
        since=None,
        until=None,
        below=None,
    )
    token = pages.token(binding, [seq])
    assert database.memory_versions.list(store, page=token).data[0].seq == seq - 1
    return token


@contextmanager
def _history(dsn: str, name: str, versions: int) -> Generator[tuple[Database, str]]:
    """A database of its own with a store of 2,000 memories and so many versions."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
    own = make_conninfo(dsn, dbname=name)
    with Database(own) as database:
        store = database.memory_stores.create(name=name).id
        changes = [Change(f"/d{number // 100:02}/{number:04}.md", f"text {number}") for number in range(MEMORIES)]
        database.memories.apply(store, changes, actor=ANN)
        with psycopg.connect(own, autocommit=True) as admin:
            admin.execute(_MORE_VERSIONS, {"store": store, "more": versions - MEMORIES})
            admin.execute(_NEW_HEADS, {"store": store, "more": versions - MEMORIES})
            admin.execute("VACUUM ANALYZE")
        yield database, store


# Versions that 400 of the memories take by turns, a second apart.
_MORE_VERSIONS: Final = """
    INSERT INTO memkernel.memory_versions (
        memory_store_id, id, seq, ordinal, memory_id, operation, path, content, content_sha256, content_size_bytes,
        created_at, created_by_type, created_by_id)
    SELECT first.memory_store_id, 'memver_' || lpad(n::text, 26, '0'), m.count + n, 2 + (n - 1) / 400,
        first.memory_id, 'modified', first.path, text, sha256(text), octet_length(text),
        first.created_at + n * interval '1 second', 'session_actor', 'sesn_' || n %% 7
    FROM (SELECT count(*) FROM memkernel.memory_versions WHERE memory_store_id = %(store)s) m,
        generate_series(1, %(more)s) n,
        LATERAL convert_to(repeat('version ' || n || E'\\n', 5), 'UTF8') text,
        memkernel.memory_versions first
    WHERE first.memory_store_id = %(store)s AND first.seq = 1 + (n - 1) %% 400
"""
_NEW_HEADS: Final = """
    WITH newest AS (
        SELECT DISTINCT ON (memory_id) * FROM memkernel.memory_versions
        WHERE memory_store_id = %(store)s ORDER BY memory_id, seq DESC
    ), heads AS (
        UPDATE memkernel.memories m SET memory_version_id = newest.id, content_sha256 = newest.content_sha256,
            content_size_bytes = newest.content_size_bytes, updated_at = newest.created_at
        FROM newest WHERE m.memory_store_id = %(store)s AND m.id = newest.memory_id
    )
    UPDATE memkernel.memory_stores SET head_seq = head_seq + %(more)s, head_at = (SELECT max(created_at) FROM newest)
    WHERE id = %(store)s
"""


# -- P12: many writers -----------------------------------------------------------------------------


def _writers(dsn: str, rounds: int = 5) -> list[Result]:
    """Changes to one store from 32 threads, against those of one thread; by turns, for a disk has its moods."""
    with Database(dsn) as synced, Database(make_conninfo(dsn, options=_UNSYNCED)) as unsynced:
        (one, many), (one_unsynced, many_unsynced) = (_rates(database, rounds) for database in (synced, unsynced))
        lost = _appends_lost(synced)
    work = f"a change to one store from {WRITERS} writers"
    result = _result("P12", work, 1.0, peer="one writer", ours_ns=1e9 / many, peer_ns=1e9 / one)
    return [
        {
            **result,
            "ratio": round(many / one, 3),
            "at_least": True,
            "changes_per_s": round(many),
            "unsynced_ratio": round(many_unsynced / one_unsynced, 3),
            "unsynced_changes_per_s": round(many_unsynced),
            "lost_edits": lost,
        }
    ]


def _rates(database: Database, rounds: int) -> tuple[float, float]:
    """Changes a second of one writer and of 32: medians."""
    taken: list[tuple[float, float]] = [(_rate(database, 1), _rate(database, WRITERS)) for _ in range(rounds)]
    one, many = (statistics.median(rates) for rates in zip(*taken, strict=True))
    return one, many


def _rate(database: Database, writers: int, seconds: float = 1.0) -> float:
    """Changes a second of so many writers, each on its own path of one store; the count is checked."""
    store = database.memory_stores.create(name=f"P12 {writers}").id
    stop = time.monotonic() + seconds
    start = threading.Barrier(writers)

    def write(writer: int) -> int:
        start.wait()
        for number in itertools.count():
            if time.monotonic() > stop:
                return number
            database.memories.write(store, f"/{writer}.md", _text(number), actor=ANN)
        return 0

    begun = time.monotonic()
    with ThreadPoolExecutor(writers) as threads:
        made = sum(threads.map(write, range(writers)))
    taken = time.monotonic() - begun
    assert database.memory_stores.retrieve(store).head_seq == made
    return made / taken


def _appends_lost(database: Database) -> int:
    """How many of 32 writers' edits of one memory are missing afterwards: none, if all is well."""
    store = database.memory_stores.create(name="P12 appends").id
    database.memories.write(store, "/f", "", actor=ANN)

    def append(writer: int) -> None:
        for number in range(5):
            database.memories.edit(store, "/f", lambda text, number=number: f"{text}{writer}.{number} ", actor=ANN)

    with ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(append, range(WRITERS)))
    return WRITERS * 5 - len(set((database.memories.at_path(store, "/f").content or "").split()))


# -- measuring -------------------------------------------------------------------------------------


def _alternate(contenders: Contenders, calls: int) -> dict[str, list[int]]:
    """Nanoseconds of each call, the contenders by turns in bursts; the first burst of each warms up."""
    taken: dict[str, list[int]] = {name: [] for name in contenders}
    for start in range(0, calls + BURST, BURST):
        for name in random.sample(list(contenders), len(contenders)):
            burst = [_timed(partial(contenders[name], number)) for number in range(start, start + BURST)]
            if start:
                taken[name] += burst
    return taken


def _timed(call: Callable[[], object]) -> int:
    begun = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - begun


def _text(number: object) -> str:
    return f"{number} " + "some memory line of text here ok\n" * 31


def _us(nanoseconds: float) -> float:
    return round(nanoseconds / 1_000, 1)


def _result(name: str, work: str, target: float, *, peer: str, ours_ns: float, peer_ns: float) -> Result:
    return {
        "id": name,
        "work": work,
        "peer": peer,
        "ratio": round(ours_ns / peer_ns, 3),
        "target": target,
        "ours_us": _us(ours_ns),
        "peer_us": _us(peer_ns),
    }


if __name__ == "__main__":
    for result in run(int(sys.argv[1]) if len(sys.argv) > 1 else MANY):
        print(json.dumps(result))
