"""Many writers at once, in threads and in processes: no edit is lost and no limit passed; PERFORMANCE G."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from memkernel.errors import (
    CapacityError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    PreconditionFailedError,
    StoreNotFoundError,
)
from memkernel.models import Change, Memory, MemoryStore, StoreProblem
from memkernel.store import Database
from tests.store.people import ANN
from tests.store.test_histories import check_log

THREADS = 32


@pytest.fixture
def at_once() -> Callable[..., list[object]]:
    """Run a function in many threads at once, each with its number."""

    def at_once(work: Callable[[int], object], count: int = THREADS) -> list[object]:
        start = threading.Barrier(count)

        def run(number: int) -> object:
            start.wait()
            return work(number)

        with ThreadPoolExecutor(count) as threads:
            return list(threads.map(run, range(count)))

    return at_once


def append(database: Database, store_id: str, path: str, token: str) -> None:
    """Add a token to a memory as an agent does: read, edit, write with the hash that was read."""
    while True:
        head = database.memories.at_path(store_id, path)
        try:
            database.memories.update(
                head.id,
                memory_store_id=store_id,
                content=(head.content or "") + token,
                precondition=head.content_sha256,
                actor=ANN,
            )
        except PreconditionFailedError:
            continue
        return


def check_appends(database: Database, store_id: str, path: str, tokens: list[str]) -> None:
    """Every token is in the text once, and each version adds exactly one to the one before."""
    text = database.memories.at_path(store_id, path).content or ""
    assert sorted(text.split()) == sorted(tokens)
    versions = database.memory_versions.list(store_id, path=path, limit=100, view="basic")
    sizes = [version.content_size_bytes or 0 for version in versions.data]
    assert sizes == sorted(sizes, reverse=True)
    assert database.memory_stores.retrieve(store_id).head_seq == len(tokens) + 1


def test_32_threads_on_one_memory_lose_no_edit(
    database: Database, store: MemoryStore, write: Callable[..., Memory], at_once: Callable[..., list[object]]
) -> None:
    write("/f", "")

    def add(number: int) -> None:
        append(database, store.id, "/f", f"{number} ")

    at_once(add)
    check_appends(database, store.id, "/f", [str(number) for number in range(THREADS)])


def test_32_threads_editing_under_the_lock_never_miss(
    database: Database, store: MemoryStore, write: Callable[..., Memory], at_once: Callable[..., list[object]]
) -> None:
    write("/f", "")
    edits: list[str] = []

    def edit(number: int) -> None:
        def add(text: str) -> str:
            edits.append(text)
            return f"{text}{number} "

        database.memories.edit(store.id, "/f", add, actor=ANN)

    at_once(edit)
    check_appends(database, store.id, "/f", [str(number) for number in range(THREADS)])
    assert len(edits) == THREADS


APPENDING = """
import json, sys
from memkernel.store import Database
from tests.store.test_many_writers import append

dsn, store, name, count = sys.argv[1:]
with Database(dsn) as database:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(count)):
        append(database, store, "/f", f"{name}{number} ")
        database.memories.create(store, path=f"/{name}/{number}", content=name, actor=append.__globals__["ANN"])
print(json.dumps([f"{name}{number}" for number in range(int(count))]))
"""


def test_two_processes_on_one_store_lose_no_edit(
    database: Database, store: MemoryStore, write: Callable[..., Memory], shared_dsn: str
) -> None:
    write("/f", "")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", APPENDING, shared_dsn, store.id, name, "40"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
    answers = [writer.communicate("go\n", timeout=120)[0] for writer in writers]
    tokens = [token for answer in answers for token in json.loads(answer)]
    assert sorted((database.memories.at_path(store.id, "/f").content or "").split()) == sorted(tokens)
    after = database.memory_stores.retrieve(store.id)
    assert (after.memory_count, after.head_seq) == (81, 161)


def test_32_threads_never_pass_the_limit(
    limited: Callable[..., Database],
    database: Database,
    store: MemoryStore,
    at_once: Callable[..., list[object]],
) -> None:
    memories = limited(memories_per_store=50).memories

    def create(number: int) -> int:
        made = 0
        for turn in range(3):
            try:
                if turn == 2:
                    memories.apply(store.id, [Change(f"/{number}/batch/{n}", "") for n in range(2)], actor=ANN)
                else:
                    memories.create(store.id, path=f"/{number}/{turn}", content="", actor=ANN)
            except CapacityError:
                continue
            made += 2 if turn == 2 else 1
        return made

    made = at_once(create)
    entries = database.memories.entries(store.id)
    assert len(entries) == sum(int(str(count)) for count in made) <= 50
    assert database.memory_stores.retrieve(store.id).memory_count == len(entries)
    assert len(entries) >= 49  # nobody was refused while there was room for a single one


def test_a_tumult_leaves_a_log(database: Database, store: MemoryStore, at_once: Callable[..., list[object]]) -> None:
    """Everything that can be done to a store, at once, on few paths; whoever looks meanwhile sees a log, too."""
    seen: list[StoreProblem] = []

    def rage(number: int) -> None:
        memories, versions = database.memories, database.memory_versions
        path, other = f"/d{number % 3}/f", f"/d{(number + 1) % 3}"
        for step in (
            lambda: memories.write(store.id, path, f"{number}", actor=ANN),
            lambda: memories.rename_tree(store.id, path, f"{other}/g", actor=ANN),
            lambda: memories.apply(store.id, [Change(f"{other}/f", "b"), Change(path, None)], actor=ANN),
            lambda: memories.rename_tree(store.id, other, f"/e{number % 2}", actor=ANN),
            lambda: versions.restore(versions.list(store.id, limit=1).data[0].id, memory_store_id=store.id, actor=ANN),
            lambda: memories.delete_tree(store.id, other, actor=ANN),
            lambda: seen.extend(database.verify(store.id).problems),
        ):
            with suppress(ConflictError, NotFoundError, InvalidInputError):
                step()

    at_once(rage, 12)
    assert seen == []
    check_log(database, store.id)


def test_stores_deleted_while_they_are_written_to_are_gone_whole(
    database: Database, at_once: Callable[..., list[object]]
) -> None:
    for _ in range(5):
        store = database.memory_stores.create(name="doomed")

        def work(number: int, store: MemoryStore = store) -> None:
            with suppress(StoreNotFoundError):
                if number == 3:
                    database.memory_stores.delete(store.id)
                else:
                    database.memories.write(store.id, f"/{number}", "text", actor=ANN)

        at_once(work, 8)
        for _, rows in database.dump({"memories": ["memory_store_id"], "memory_versions": ["memory_store_id"]}):
            assert store.id not in {row[0] for row in rows}
