"""Many writers on one store: no edit is lost, no path is taken twice, no limit passed (CONTRACT F.11, fault 9)."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

from memkernel.errors import MemoryToolError
from memkernel.models import Limits
from memkernel.store import Database
from memkernel.tool.postgres import PostgresBackend
from tests.tool.calls import ACTOR, Calls

THREADS = 32


def together(count: int, work: Callable[[int], object]) -> list[object]:
    """What each of so many threads, started at once, returns or raises."""
    outcomes: list[object] = [None] * count
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        barrier.wait()
        try:
            outcomes[number] = work(number)
        except Exception as error:
            outcomes[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def versions(database: Database, store_id: str) -> int:
    return database.memory_stores.retrieve(store_id).head_seq


def test_f011_thirty_two_threads_lose_no_edit(tool: Calls, database: Database, store_id: str) -> None:
    tool.file("/memories/f", "".join(f"line {number}.\n" for number in range(THREADS)))

    def edit(number: int) -> str:
        return tool("str_replace", path="/memories/f", old_str=f"line {number}.", new_str=f"edited {number}.")

    outcomes = together(THREADS, edit)
    assert all(isinstance(outcome, str) for outcome in outcomes), outcomes
    assert tool.text("/memories/f") == "".join(f"edited {number}.\n" for number in range(THREADS))
    assert versions(database, store_id) == 1 + THREADS


def test_f011_two_edits_of_one_place_do_not_mix(tool: Calls, database: Database, store_id: str) -> None:
    tool.file("/memories/f", "start")
    outcomes = together(8, lambda number: tool("str_replace", path="/memories/f", old_str="start", new_str=f"{number}"))
    winners = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, str)]
    assert [tool.text("/memories/f")] == [str(number) for number in winners]
    assert all("did not appear verbatim" in str(outcome) for outcome in outcomes if not isinstance(outcome, str))
    assert versions(database, store_id) == 2


_WORKER = """
import sys, threading
from memkernel.models import Actor
from memkernel.store import Database
from memkernel.tool.commands import run
from memkernel.tool.postgres import PostgresBackend
dsn, store_id, name = sys.argv[1:]
with Database(dsn) as database:
    backend = PostgresBackend(database, store_id, actor=Actor("session_actor", "sesn_" + name))
    def insert(number):
        for turn in range(4):
            run(backend, {"command": "insert", "path": "/memories/f", "insert_line": 0,
                          "insert_text": f"{name} {number} {turn}"})
    threads = [threading.Thread(target=insert, args=(number,)) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""


def test_two_processes_lose_no_edit(tool: Calls, shared_dsn: str, database: Database, store_id: str) -> None:
    tool.file("/memories/f", "")
    command = [sys.executable, "-c", _WORKER, shared_dsn, store_id]
    processes = [subprocess.Popen([*command, name]) for name in ("one", "two")]
    assert [process.wait() for process in processes] == [0, 0]
    expected = {f"{name} {number} {turn}" for name in ("one", "two") for number in range(8) for turn in range(4)}
    lines = tool.text("/memories/f").removesuffix("\n").split("\n")
    assert len(lines) == len(expected)
    assert set(lines) == expected
    assert versions(database, store_id) == 1 + len(expected)


def test_one_of_eight_creates_of_a_path_succeeds(tool: Calls, database: Database, store_id: str) -> None:
    """Fault 9."""
    outcomes = together(8, lambda number: tool("create", path="/memories/race.md", file_text=f"text {number}"))
    winner = next(number for number, outcome in enumerate(outcomes) if isinstance(outcome, str))
    refusals = [str(outcome) for outcome in outcomes if isinstance(outcome, MemoryToolError)]
    assert refusals == ["File /memories/race.md already exists"] * 7
    assert tool.text("/memories/race.md") == f"text {winner}"
    assert versions(database, store_id) == 1


def test_one_of_eight_renames_of_a_file_succeeds(tool: Calls, database: Database, store_id: str) -> None:
    tool.file("/memories/a", "x")
    outcomes = together(8, lambda number: tool("rename", old_path="/memories/a", new_path=f"/memories/b{number}"))
    winner = next(number for number, outcome in enumerate(outcomes) if isinstance(outcome, str))
    assert [str(outcome) for outcome in outcomes].count("The path /memories/a does not exist") == 7
    assert tool.listing() == ["/memories", f"/memories/b{winner}"]
    assert versions(database, store_id) == 2


def test_the_limit_of_a_store_is_exact(
    limited_tool: Callable[[Limits], Calls], database: Database, store_id: str
) -> None:
    tool = limited_tool(Limits(memories_per_store=20))
    outcomes = together(THREADS, lambda number: tool("create", path=f"/memories/f{number}", file_text=""))
    assert sum(isinstance(outcome, str) for outcome in outcomes) == 20
    assert all("the memory store is full" in str(outcome) for outcome in outcomes if not isinstance(outcome, str))
    assert database.memory_stores.retrieve(store_id).memory_count == 20


def test_a_file_and_a_directory_never_share_a_path(database: Database, store_id: str) -> None:
    """CONTRACT B.6: whichever comes first stays."""
    tool = Calls(PostgresBackend(database, store_id, actor=ACTOR))
    for turn in range(8):
        paths = [f"/memories/t{turn}", f"/memories/t{turn}/below"]
        outcomes = together(2, lambda number, paths=paths: tool("create", path=paths[number], file_text="x"))
        assert sum(isinstance(outcome, str) for outcome in outcomes) == 1, outcomes
