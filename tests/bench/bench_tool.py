"""P1-P5: the memory tool on PostgreSQL against the SDK's local filesystem tool, both through `.call(dict)`.

Run: `python -m tests.bench.bench_tool`. Nothing here fails: the figures stand beside their targets. Ours is durable
and keeps every version; the peer keeps none, and fsyncs neither a deletion nor a renaming (PERFORMANCE A2).
`unsynced_us` is ours again with synchronous_commit=off: what a change costs besides the disk's wait.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from anthropic.tools import BetaLocalFilesystemMemoryTool
from psycopg.conninfo import make_conninfo

from memkernel import cluster
from memkernel.agent.memory_tool import memory_tool
from memkernel.models import Limits
from memkernel.store import Database

FOLDERS: Final = 20
FILES: Final = 100
BURST: Final = 20
"""Calls of one contender in a row: a round trip is bimodal, by whether client and server share a processor."""

Command = dict[str, Any]
Result = dict[str, Any]
Work = Callable[[int], Command]
"""The command of the n-th call."""


class Tool(Protocol):
    def call(self, input: object, /) -> Any: ...


def run(calls: int = 400) -> list[Result]:
    """One result for each work of P1 to P5."""
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o755)  # as root, the server runs under another account
        server = cluster.EmbeddedCluster(home=f"{home}/memkernel")
        try:
            dsn, limits = server.ensure(), Limits(memories_per_store=10_000)
            unsynced_dsn = make_conninfo(dsn, options="-c synchronous_commit=off")
            with Database(dsn, limits=limits) as ours, Database(unsynced_dsn, limits=limits) as unsynced:
                databases = {"ours": ours, "unsynced": unsynced}
                return [*_small_files(databases, home, calls), *_large_files(databases, home, calls // 2)]
        finally:
            server.stop()


def _small_files(databases: dict[str, Database], home: str, calls: int) -> list[Result]:
    """P1-P4: 2,000 files of 1.7 KB."""
    tools = _filled(databases, f"{home}/small", FOLDERS, FILES, 40)
    compare = Comparison(tools, calls)
    listing = Comparison(tools, max(calls // 20, 10))
    return [
        compare("P1", "view a file of 1.7 KB in a store of 2,000", 0.5, lambda n: {"command": "view", "path": _old(n)}),
        listing(
            "P2",
            "view a directory of 100",
            0.08,
            lambda n: {"command": "view", "path": f"/memories/d{n % FOLDERS:02d}"},
        ),
        listing("P2", "view the root of 2,000", 0.04, lambda _: {"command": "view", "path": "/memories"}),
        *_changes(
            compare,
            "1.7 KB",
            40,
            {
                "create": ("P3", 0.75),
                "str_replace": ("P3", 0.75),
                "insert": ("P3", 0.75),
                "rename": ("P4", 1.5),
                "delete": ("P4", 1.0),
            },
        ),
    ]


def _large_files(databases: dict[str, Database], home: str, calls: int) -> list[Result]:
    """P5: 100 files of 100 KB."""
    compare = Comparison(_filled(databases, f"{home}/large", FOLDERS, 5, 2_300), calls)
    return [
        compare("P5", "view a file of 100 KB", 1.3, lambda n: {"command": "view", "path": _old(n, 5)}),
        *_changes(
            compare,
            "100 KB",
            2_300,
            {
                "create": ("P5", 1.3),
                "str_replace": ("P5", 1.6),
                "insert": ("P5", 1.6),
                "rename": ("P5", 3.0),
                "delete": ("P5", 1.3),
            },
            files=5,
        ),
    ]


def _changes(
    compare: Comparison, size: str, lines: int, targets: dict[str, tuple[str, float]], files: int = FILES
) -> list[Result]:
    """The five changing commands, in an order in which each finds what the one before left."""
    works: dict[str, Work] = {
        "create": lambda n: {"command": "create", "path": _new(n), "file_text": text(n, lines)},
        "str_replace": lambda n: {
            "command": "str_replace",
            "path": _old(n, files),
            "old_str": f"L{lines // 2:04d} ",
            "new_str": f"L{lines // 2:04d} {n} ",
        },
        "insert": lambda n: {
            "command": "insert",
            "path": _old(n, files),
            "insert_line": lines // 2,
            "insert_text": "x\n" if lines > 1_000 else "a new line here\n",
        },
        "rename": lambda n: {"command": "rename", "old_path": _new(n), "new_path": _new(n) + ".moved"},
        "delete": lambda n: {"command": "delete", "path": _new(n) + ".moved"},
    }
    return [
        compare(name, f"{command} at {size}", target, works[command]) for command, (name, target) in targets.items()
    ]


class Comparison:
    """Calls of all tools by turns, in bursts, and their medians."""

    def __init__(self, tools: dict[str, Tool], calls: int) -> None:
        self._tools, self._calls = tools, calls
        self._random = random.Random(0)

    def __call__(self, name: str, work: str, target: float, command: Work) -> Result:
        taken: dict[str, list[int]] = {contender: [] for contender in self._tools}
        for start in range(0, self._calls, BURST):
            for contender in self._random.sample(list(self._tools), len(self._tools)):
                call = self._tools[contender].call
                for number in range(start, min(start + BURST, self._calls)):
                    given = command(number)
                    begun = time.perf_counter_ns()
                    call(given)
                    taken[contender].append(time.perf_counter_ns() - begun)
        median_us = {contender: round(statistics.median(times) / 1_000, 1) for contender, times in taken.items()}
        return {
            "id": name,
            "work": work,
            "peer": "the SDK's local filesystem tool",
            "ratio": round(median_us["ours"] / median_us["peer"], 3),
            "target": target,
            **{f"{contender}_us": taken_us for contender, taken_us in median_us.items()},
        }


def _filled(databases: dict[str, Database], folder: str, folders: int, files: int, lines: int) -> dict[str, Tool]:
    """All tools on the same tree."""
    tools: dict[str, Tool] = {"peer": BetaLocalFilesystemMemoryTool(folder)}
    for name, database in databases.items():
        tools[name] = memory_tool(database, database.memory_stores.create(name=f"{folder} {name}").id)
    for tool in tools.values():
        for number in range(folders * files):
            tool.call({"command": "create", "path": _old(number, files), "file_text": text(number, lines)})
    return tools


def _old(number: int, files: int = FILES) -> str:
    return f"/memories/d{number % FOLDERS:02d}/f{number // FOLDERS % files:03d}.md"


def _new(number: int) -> str:
    return f"/memories/d{number % FOLDERS:02d}/n{number:05d}.md"


def text(seed: int, lines: int) -> str:
    """So many lines of 43 bytes, each with a number that occurs once."""
    words = random.Random(seed % 50).choices(["alpha", "beta", "gamma", "delta", "units", "prefers", "notes"], k=9)
    return "".join(f"L{number:04d} {' '.join(words):.36}\n" for number in range(lines))


if __name__ == "__main__":
    for result in run():
        print(json.dumps(result))
