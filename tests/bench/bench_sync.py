"""P8 and P9: a sync after a cell, against the SDK's own `SessionMemoryStores` on a folder of the same files.

Run: `python -m tests.bench.bench_sync`. The peer speaks to the same PostgreSQL through the same record layer. Its HTTP
stops at the client's transport, which answers in this process: no socket, no server, no routing, so a real server can
only be slower. Its syncs are asked for directly, without its interval of 15 s. Ours is one durable transaction that
either holds all or nothing; the peer's changes are one each. The first row of P8 is the SDK, the second a bare pass of
`os.scandir` and `stat` over the same folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import httpx2
from anthropic import AsyncAnthropic
from anthropic.lib.tools._memories import SessionMemoryStores

from memkernel import cluster
from memkernel.models import Actor, AttachmentParams, Change, Memory
from memkernel.store import Database
from memkernel.sync.engine import MountFolders, MountSync
from memkernel.sync.rejected import RejectedFolder
from tests.bench.bench_scan import bare
from tests.fix_folders import on_disk

FILES: Final = 2_000
FOLDERS: Final = 20
SIZE: Final = 4_096
SETTLE_S: Final = 2.2
"""A file's stamp is trusted two seconds after it was written."""

SDK: Final = "SDK SessionMemoryStores"
ANN: Final = Actor("user_actor", "ann")
Result = dict[str, Any]


class Transport(httpx2.AsyncBaseTransport):
    """Answers the SDK from the record layer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        parts = request.url.path.split("/")  # /v1/memory_stores/{store}/memories[/{memory}]
        body: dict[str, Any] = json.loads(request.content) if request.content else {}
        answer = self._answer(request, parts[3], parts[5] if len(parts) > 5 else None, body)
        return httpx2.Response(200, json=answer, request=request)

    def _answer(self, request: httpx2.Request, store_id: str, memory_id: str | None, body: dict[str, Any]) -> Any:
        memories, query = self._database.memories, request.url.params
        if request.method == "GET" and memory_id is None:
            page = memories.list(
                store_id, limit=int(query["limit"]), view=query.get("view", "basic"), page=query.get("page")
            )
            return {"data": [_json(cast(Memory, one)) for one in page.data], "next_page": page.next_page}
        if request.method == "GET":
            return _json(memories.retrieve(str(memory_id), memory_store_id=store_id, view="full"))
        if memory_id is None:
            return _json(memories.create(store_id, path=body["path"], content=body["content"], actor=ANN))
        return _json(
            memories.update(
                memory_id,
                memory_store_id=store_id,
                content=body["content"],
                precondition=body["precondition"]["content_sha256"],
                actor=ANN,
            )
        )


def _json(memory: Memory) -> dict[str, Any]:
    return {
        "type": "memory",
        **{name: getattr(memory, name) for name in ("id", "memory_store_id", "memory_version_id", "path", "content")},
        **{name: getattr(memory, name) for name in ("content_size_bytes", "content_sha256")},
        "created_at": memory.created_at.isoformat(),
        "updated_at": memory.updated_at.isoformat(),
    }


@dataclass(frozen=True)
class Contender:
    """A folder, and what brings it and its store together."""

    folder: Path
    sync: Callable[[], Awaitable[object]]


def run() -> list[Result]:
    """One result for each row of P8 and P9."""
    with tempfile.TemporaryDirectory(dir=on_disk()) as home:
        os.chmod(home, 0o755)  # as root, the server runs under another account
        server = cluster.EmbeddedCluster(home=f"{home}/memkernel")
        try:
            with Database(server.ensure()) as database:
                return asyncio.run(_all(database, Path(home)))
        finally:
            server.stop()


async def _all(database: Database, home: Path) -> list[Result]:
    ours, peer = _ours(database, home), await _peer(database, home)
    time.sleep(SETTLE_S)  # nothing else runs in this loop
    await ours.sync()
    times = await _compare(ours, peer, 0, 15)
    unchanged = f"sync, {FILES:,} files, nothing changed"
    results = [
        _result("P8", unchanged, times, 1 / 15, SDK),
        _result("P8", unchanged, await _against_bare(ours, 51), 1.5, "bare os.scandir + stat"),
    ]
    for changed, turns, target in ((100, 7, 1 / 20), (2_000, 3, 1 / 35)):
        times = await _compare(ours, peer, changed, turns)
        results.append(_result("P9", f"sync, {changed:,} changed", times, target, SDK))
    return results


def _store(database: Database, name: str) -> str:
    store = database.memory_stores.create(name=name)
    database.memories.apply(store.id, [Change(path, _text(path, 0)) for path in _paths()], actor=ANN)
    return store.id


def _paths() -> list[str]:
    return [f"/d{number % FOLDERS:02}/{number:04}.md" for number in range(FILES)]


def _text(path: str, turn: int) -> str:
    return (f"{turn} {path} " * SIZE)[:SIZE]


def _ours(database: Database, home: Path) -> Contender:
    session = database.sessions.create([AttachmentParams(_store(database, "ours"))])
    folders = MountFolders(home / "ours", home / "nonce", home / "aside")
    folders.files.mkdir()
    mount = MountSync(database, session.id, session.resources[0], folders, RejectedFolder(home / "rejected"))

    async def sync() -> None:
        report = mount.sync()
        assert report.ok

    mount.sync()
    return Contender(folders.files, sync)


async def _peer(database: Database, home: Path) -> Contender:
    store_id = _store(database, "theirs")
    client = AsyncAnthropic(
        api_key="none", base_url="http://memkernel", http_client=httpx2.AsyncClient(transport=Transport(database))
    )
    stores = SessionMemoryStores(client, workdir=home)
    resource = {"type": "memory_store", "memory_store_id": store_id, "access": "read_write", "name": "theirs"}
    session = _Session([_Resource(**resource, mount_path=str(home / "theirs"))])
    await stores.download(cast(Any, session))
    sync = stores._sync_all  # pyright: ignore[reportPrivateUsage]  # what `sync_if_due` calls once in 15 s
    return Contender(home / "theirs", lambda: sync(final=False))


@dataclass(frozen=True)
class _Resource:
    type: str
    memory_store_id: str
    access: str
    name: str
    mount_path: str


@dataclass(frozen=True)
class _Session:
    resources: list[_Resource]


async def _compare(ours: Contender, peer: Contender, changed: int, turns: int) -> tuple[float, float]:
    """Medians of both, in turn; before each, so many files are changed by rename, as editors do."""
    times: dict[int, list[float]] = {0: [], 1: []}
    for turn in range(1, turns + 1):
        for which, contender in enumerate((ours, peer)):
            for path in _paths()[:changed]:
                new = contender.folder.with_name("new")
                new.write_text(_text(path, turn + 1_000 * changed))
                new.replace(contender.folder / path[1:])
            began = time.perf_counter()
            await contender.sync()
            times[which].append(time.perf_counter() - began)
    return statistics.median(times[0]), statistics.median(times[1])


async def _against_bare(ours: Contender, turns: int) -> tuple[float, float]:
    """Medians of our sync and of a bare pass over the same folder, one after the other."""
    times: list[tuple[float, float]] = []
    for _ in range(turns):
        began = time.perf_counter()
        await ours.sync()
        half = time.perf_counter()
        bare(ours.folder)
        times.append((half - began, time.perf_counter() - half))
    ours_s, least_s = zip(*times, strict=True)
    return statistics.median(ours_s), statistics.median(least_s)


def _result(ident: str, work: str, times: tuple[float, float], target: float, peer: str) -> Result:
    ours_s, peer_s = times
    return {
        "id": ident,
        "work": work,
        "ours_us": ours_s * 1e6,
        "peer_us": peer_s * 1e6,
        "ratio": ours_s / peer_s,
        "target": round(target, 3),
        "peer": peer,
    }


if __name__ == "__main__":
    from tests.bench.__main__ import line

    for result in run():
        print(line(result))
