"""The SDK's own worker, `SessionMemoryStores`, unmodified, in process and over HTTP (F.270; CONTRACT D.7)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import anthropic
import httpx2
import pytest
from anthropic.lib.tools import _memories  # pyright: ignore[reportPrivateUsage]  # the SDK's worker has no other door
from anthropic.lib.tools._memories import SessionMemoryError, SessionMemoryStores

from memkernel.handle.connection import Connection, connect
from tests.sdk.python.conftest import Serving

LATER_S: Final = 20.0
"""A sync is due again; a file that is gone is not yet believed to be."""

Before = Callable[[httpx2.Request], None]
Steps = Callable[["Worker"], Awaitable[None]]


class Worker:
    """A session with one store, its folder, a clock to turn, and somebody else who uses the same store.

    Attributes:
        stores: the SDK's worker.
        folder: the store's folder on this disk.
        other: a client of somebody else's.
        store: the store's id.
        sent: the worker's requests, as method and path's last part.
        before: called with each of its requests before that is sent.
        after: called with each of them when it has been answered, before the answer is given to the SDK.
    """

    def __init__(self, client: anthropic.AsyncAnthropic, other: anthropic.Anthropic, directory: Path) -> None:
        self.client, self.other, self.directory = client, other, directory
        self.folder = directory / "memory" / "notes"
        self.store = other.beta.memory_stores.create(name="Notes").id
        self.sent: list[tuple[str, str]] = []
        self.before: Before | None = None
        self.after: Before | None = None
        self.now = 1_000.0
        self.stores = SessionMemoryStores(client, workdir=directory)
        http_client: Any = client._client  # pyright: ignore[reportPrivateUsage]  # the one place that all requests pass
        self._send, http_client.send = http_client.send, self._noted

    async def _noted(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        self.sent.append((request.method, request.url.path.rpartition("/")[2]))
        if self.before is not None:
            self.before(request)
        response = await self._send(request, **options)
        if self.after is not None:
            self.after(request)
        return response

    async def download(self, access: Any = "read_write") -> None:
        """Begin a session and download its store."""
        resource: Any = {"type": "memory_store", "memory_store_id": self.store, "access": access}
        made = self.other.beta.sessions.create(agent="agent_x", environment_id="env_x", resources=[resource])
        session = await self.client.beta.sessions.retrieve(made.id)
        for attached in session.resources:
            assert attached.type == "memory_store"
            assert attached.mount_path == "/mnt/memory/notes"
            attached.mount_path = str(self.folder)  # no test may write where a sandbox's folders are
        await self.stores.download(session)

    async def sync(self, seconds: float = LATER_S) -> list[tuple[str, str]]:
        """What is sent when the worker syncs after so many seconds."""
        self.now += seconds
        del self.sent[:]
        await self.stores.sync_if_due()
        return [(method, path) for method, path in self.sent if method != "GET"]

    def write(self, path: str, content: str | bytes) -> None:
        """Write a file in the folder."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    @property
    def files(self) -> dict[str, str]:
        """The folder's files."""
        found = [path for path in self.folder.rglob("*") if path.is_file() and path.name != _memories.MARKER_PATH]
        return {path.relative_to(self.folder).as_posix(): path.read_bytes().decode() for path in found}

    def put(self, path: str, content: str) -> str:
        """Somebody else creates a memory; its id."""
        return self.other.beta.memory_stores.memories.create(self.store, path=f"/{path}", content=content).id

    def edit(self, memory: str, **change: Any) -> None:
        """Somebody else changes a memory."""
        self.other.beta.memory_stores.memories.update(memory, memory_store_id=self.store, **change)

    def remove(self, memory: str) -> None:
        """Somebody else deletes a memory."""
        self.other.beta.memory_stores.memories.delete(memory, memory_store_id=self.store)

    @property
    def memories(self) -> dict[str, str]:
        """The store's memories."""
        listed: Any = self.other.beta.memory_stores.memories.list(self.store, view="full")
        return {memory.path[1:]: memory.content for memory in listed}

    @property
    def history(self) -> list[tuple[str, str | None]]:
        """The store's versions, oldest first."""
        listed = self.other.beta.memory_stores.memory_versions.list(self.store, limit=100)
        return [(version.operation, version.path) for version in listed][::-1]


@pytest.fixture(params=["in process", "over HTTP"])
def worker(
    request: pytest.FixtureRequest,
    serving: Serving,
    connection: Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Worker]:
    """A worker on a store that holds nothing; its clock stands still."""
    if request.param == "in process":
        made = Worker(connection.async_anthropic(), connection.anthropic(), tmp_path)
    else:
        url, key = serving()
        made = Worker(
            anthropic.AsyncAnthropic(
                base_url=url, api_key=key, http_client=anthropic.DefaultAsyncHttpxClient(trust_env=False)
            ),
            anthropic.Anthropic(base_url=url, api_key=key, http_client=anthropic.DefaultHttpxClient(trust_env=False)),
            tmp_path,
        )
    monkeypatch.setattr(_memories, "monotonic", lambda: made.now)
    yield made
    made.other.close()


@pytest.fixture
def connection(shared_dsn: str, workspace: str) -> Iterator[Connection]:
    """A connection to a workspace that holds nothing."""
    with connect(shared_dsn, workspace=workspace) as connection:
        yield connection


def play(worker: Worker, steps: Steps) -> None:
    """Run the steps on a loop, and close the worker's client there."""

    async def run() -> None:
        try:
            await steps(worker)
        finally:
            await worker.client.close()

    asyncio.run(run())


def test_a_download_brings_every_memory(worker: Worker) -> None:
    """250 of them, nested; what is only read leaves no version."""
    expected = {f"d{number % 7}/{number % 3}/{number:03}.md": f"größe {number}\r\n" for number in range(248)}
    expected |= {"empty": "", "größe.md": "x\0y"}
    for path, content in expected.items():
        worker.put(path, content)

    async def steps(worker: Worker) -> None:
        await worker.download()
        assert worker.files == expected
        assert worker.stores.roots == [worker.folder]
        assert await worker.sync() == []
        assert worker.sent == [("GET", "memories")] * 3
        await worker.stores.finish()
        with pytest.raises(RuntimeError, match="finish"):
            await worker.stores.finish()
        assert len(worker.history) == 250
        await worker.stores.dispose()
        assert not worker.folder.exists()

    play(worker, steps)


def test_local_changes_are_pushed(worker: Worker) -> None:
    worker.put("edited.md", "one")
    worker.put("deleted.md", "one")
    worker.put("kept.md", "one")

    async def steps(worker: Worker) -> None:
        await worker.download()
        worker.write("edited.md", "two")
        worker.write("new/nested.md", "three")
        (worker.folder / "deleted.md").unlink()
        assert await worker.sync(1) == []
        assert len(await worker.sync()) == 2
        assert worker.memories == {"deleted.md": "one", "edited.md": "two", "kept.md": "one", "new/nested.md": "three"}
        assert [method for method, _ in await worker.sync(31)] == ["DELETE"]
        assert worker.memories == worker.files == {"edited.md": "two", "kept.md": "one", "new/nested.md": "three"}
        assert worker.history[3:] == [
            ("modified", "/edited.md"),
            ("created", "/new/nested.md"),
            ("deleted", "/deleted.md"),
        ]

    play(worker, steps)


def test_remote_changes_are_pulled(worker: Worker) -> None:
    edited, moved, deleted = worker.put("edited", "one"), worker.put("moved", "one"), worker.put("deleted", "one")

    async def steps(worker: Worker) -> None:
        await worker.download()
        worker.edit(edited, content="two")
        worker.edit(moved, path="/elsewhere/moved")
        worker.remove(deleted)
        worker.put("new/a", "three")
        assert await worker.sync() == []
        assert worker.files == worker.memories == {"edited": "two", "elsewhere/moved": "one", "new/a": "three"}

    play(worker, steps)


def test_both_sides_changed_and_the_server_wins(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    edited, deleted = worker.put("edited", "one"), worker.put("deleted", "one")
    gone = worker.put("gone", "one")
    worker.put("kept", "one")

    async def steps(worker: Worker) -> None:
        await worker.download()
        worker.write("edited", "mine")
        (worker.folder / "deleted").unlink()
        worker.write("gone", "the only copy")
        worker.edit(edited, content="theirs")
        worker.edit(deleted, content="theirs")
        worker.remove(gone)
        assert [method for method, _ in await worker.sync()] == ["POST"]
        assert "keeping the remote version" in caplog.text
        assert "restoring the remote version" in caplog.text
        expected = {"edited": "theirs", "deleted": "theirs", "gone": "the only copy", "kept": "one"}
        assert worker.files == worker.memories == expected

    play(worker, steps)


def test_a_precondition_that_loses_the_race_pulls_the_winner(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    """409, once: the SDK does not retry it."""
    edited, deleted = worker.put("edited", "one"), worker.put("deleted", "one")

    async def steps(worker: Worker) -> None:
        await worker.download()
        worker.write("edited", "mine")
        (worker.folder / "deleted").unlink()
        assert await worker.sync() == [("POST", edited)]
        worker.write("edited", "mine again")

        def overtake(request: httpx2.Request) -> None:
            if request.method != "GET":
                worker.edit(edited if request.method == "POST" else deleted, content="theirs")

        worker.before = overtake
        assert sorted(method for method, _ in await worker.sync(31)) == ["DELETE", "POST"]
        worker.before = None
        assert "the upload was refused" in caplog.text
        assert "deleted locally but changed remotely" in caplog.text
        await worker.sync()
        assert worker.files == worker.memories == {"edited": "theirs", "deleted": "theirs"}

    play(worker, steps)


def test_a_memory_that_goes_before_its_update_is_made_anew(worker: Worker) -> None:
    """404."""
    memory = worker.put("a", "one")

    async def steps(worker: Worker) -> None:
        await worker.download()
        worker.write("a", "two")

        def remove(request: httpx2.Request) -> None:
            if request.method == "POST":
                worker.before = None
                worker.remove(memory)

        worker.before = remove
        assert [path for _, path in await worker.sync()] == [memory, "memories"]
        assert worker.memories == {"a": "two"}
        assert worker.history == [("created", "/a"), ("deleted", "/a"), ("created", "/a")]

    play(worker, steps)


def test_what_the_server_refuses_stays_and_the_rest_is_stored(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    worker.put("kept", "one")

    async def steps(worker: Worker) -> None:
        await worker.download()
        worker.write("large", "x" * 102_401)
        worker.write("binary", b"\xff\xfe")
        worker.write("zero\u200bwidth", "illegal name")
        worker.write("good", "two")
        assert len(await worker.sync()) == 3
        assert caplog.text.count("the server rejected this memory file") >= 2
        assert worker.memories == {"kept": "one", "good": "two"}
        assert await worker.sync() == []
        worker.write("large", "x" * 102_400)
        assert len(await worker.sync()) == 1
        assert set(worker.memories) == {"kept", "good", "large"}
        assert {"binary", "zero\u200bwidth"} <= {path.name for path in worker.folder.iterdir()}

    play(worker, steps)


def test_a_read_only_store_pulls_and_never_pushes(worker: Worker) -> None:
    memory = worker.put("a", "one")
    worker.put("b", "one")

    async def steps(worker: Worker) -> None:
        await worker.download("read_only")
        assert worker.stores.read_only_roots == [worker.folder]
        worker.write("a", "mine")
        worker.write("new", "mine")
        (worker.folder / "b").unlink()
        assert await worker.sync() == []
        await worker.stores.flush_writes()
        worker.edit(memory, content="two")
        assert await worker.sync(60) == []
        assert (worker.files["a"], worker.memories) == ("two", {"a": "two", "b": "one"})

    play(worker, steps)


@pytest.mark.parametrize("retries", [0, 2])
def test_an_answer_that_is_lost_is_no_second_change(worker: Worker, retries: int) -> None:
    worker.put("edited", "one")
    worker.client.max_retries = retries

    async def steps(worker: Worker) -> None:
        await worker.download()
        worker.write("edited", "two")
        worker.write("new", "two")
        lost = set[str]()

        def lose(request: httpx2.Request) -> None:
            if request.method == "POST" and request.url.path not in lost:
                lost.add(request.url.path)
                raise httpx2.ReadError("the connection broke", request=request)

        worker.after = lose
        await worker.sync()
        assert len(lost) == 2
        worker.after = None
        worker.write("edited", "three")
        await worker.sync()
        assert worker.files == worker.memories == {"edited": "three", "new": "two"}
        assert worker.history == [
            ("created", "/edited"),
            ("modified", "/edited"),
            ("created", "/new"),
            ("modified", "/edited"),
        ]

    play(worker, steps)


def test_a_flush_pushes_and_does_nothing_else(worker: Worker) -> None:
    conflicting = worker.put("conflicting", "one")
    for name in ("edited", "deleted"):
        worker.put(name, "one")

    async def steps(worker: Worker) -> None:
        await worker.download()
        for number in range(40):
            worker.write(f"new/{number:02}", str(number))
        worker.write("edited", "two")
        worker.write("conflicting", "mine")
        (worker.folder / "deleted").unlink()
        worker.edit(conflicting, content="theirs")
        await worker.stores.flush_writes()
        new = {f"new/{number:02}": str(number) for number in range(40)}
        assert worker.memories == {"conflicting": "theirs", "edited": "two", "deleted": "one", **new}
        assert worker.files["conflicting"] == "mine"

    play(worker, steps)


def test_a_wiped_folder_deletes_nothing(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    for name in "ab":
        worker.put(name, name)

    async def steps(worker: Worker) -> None:
        await worker.download()
        for name in "ab":
            (worker.folder / name).unlink()
        assert await worker.sync(60) == []
        assert "every memory file is gone at once" in caplog.text
        (worker.folder / _memories.MARKER_PATH).unlink()
        worker.write("a", "changed")
        await worker.stores.finish()
        assert "the marker file is gone" in caplog.text
        assert worker.memories == {"a": "a", "b": "b"}

    play(worker, steps)


def test_a_session_on_a_store_that_is_gone_does_not_begin(worker: Worker) -> None:
    async def steps(worker: Worker) -> None:
        await worker.download()
        again = SessionMemoryStores(worker.client, workdir=worker.directory)
        (session,) = list(worker.other.beta.sessions.list())
        attached: Any = session.resources[0]
        attached.mount_path, attached.memory_store_id = str(worker.directory / "new"), "memstore_none"
        with pytest.raises(SessionMemoryError, match="memstore_none: Error code: 404"):
            await again.download(session)

    play(worker, steps)


@pytest.fixture(autouse=True)
def _hear_the_worker(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "anthropic.lib.tools.agent_toolset")
