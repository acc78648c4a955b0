"""The load on a real `memkernel serve`: 8 clients for 30 seconds, reads and writes mixed; then one client alone.

Run: `python -m tests.bench.bench_serve [seconds]`. A 5xx or a lost update ends it with an error; how fast it is, is
only told. The clients are bare HTTP in threads of one process, beside the server and PostgreSQL on the same machine.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from typing import Any, Final

from memkernel import cluster
from memkernel.api.messages import Request, Response
from tests.api.calls import Caller, Json, at
from tests.fix_server import MemoryServer

Result = dict[str, Any]

CLIENTS: Final = 8
COUNTERS: Final = 3
MEMORIES: Final = 25
_TEXT: Final = "some memory line of text here ok\n" * 31


class Client:
    """One client: a connection, a directory of memories, and the counters that all share.

    Attributes:
        took_us: how long each request took.
        statuses: how often each was answered.
        added: how often it has moved the counters on.
    """

    def __init__(self, server: MemoryServer, name: str, store: str, counters: list[Json]) -> None:
        self.took_us: list[float] = []
        self.statuses = Counter[int]()
        self.added = 0
        self._server, self._store, self._counters = server, store, counters
        self._random = random.Random(name)
        self._call = Caller(self._dispatch, {"x-api-key": "any"})
        self._prefix = f"/{name}/"
        self._memories = [self._call.memory(store, f"{self._prefix}{number}.md", _TEXT) for number in range(MEMORIES)]

    def _dispatch(self, request: Request) -> Response:
        begun = time.perf_counter()
        response = self._server.dispatch(request)
        self.took_us.append((time.perf_counter() - begun) * 1e6)
        self.statuses[response.status] += 1
        return response

    def work(self, until: float) -> None:
        """Seven readings in ten; what is left is a counter, an update, and a memory that goes and comes."""
        reading = [self._retrieve] * 4 + [self._list, self._page, self._versions]
        while time.monotonic() < until:
            self._random.choice([*reading, self._count, self._update, self._replace])()

    def _retrieve(self) -> None:
        self._call("GET", at(self._store, self._random.choice(self._memories)["id"])).ok  # noqa: B018  # it is looked at

    def _list(self) -> None:
        self._call.all(f"{at(self._store)}/memories", path_prefix=self._prefix)

    def _page(self) -> None:
        self._call("GET", f"{at(self._store)}/memories", depth=1, limit=20)

    def _versions(self) -> None:
        self._call.versions(self._store, limit=20)

    def _count(self) -> None:
        """One more, where nobody was faster; who was refused has changed nothing."""
        counter = self._random.choice(self._counters)
        read = self._call("GET", at(self._store, counter["id"]), view="full").ok
        guard = {"type": "content_sha256", "content_sha256": read["content_sha256"]}
        # Signed: that the text is there already is a success (CONTRACT B.7), and two may count to the same number.
        content = f"{_counted(read) + 1} by {self._prefix}"
        answer = self._call.update(counter, content=content, precondition=guard)
        self.added += answer.status == 200

    def _update(self) -> None:
        self._call.update(self._random.choice(self._memories), content=f"{self._random.random()}\n{_TEXT}")

    def _replace(self) -> None:
        number = self._random.randrange(MEMORIES)
        self._call.delete(self._memories[number])
        self._memories[number] = self._call.memory(self._store, f"{self._prefix}{number}.md", _TEXT)


def run(seconds: float = 30.0) -> list[Result]:
    """The time that a request takes of the server, with 8 clients and with one."""
    with tempfile.TemporaryDirectory() as home, ExitStack() as ending:
        os.chmod(home, 0o755)  # as root, the server runs under another account
        postgres = cluster.EmbeddedCluster(home=f"{home}/memkernel")
        ending.callback(postgres.stop)
        server = ending.enter_context(MemoryServer(postgres.ensure()))
        call = Caller(server.dispatch, {"x-api-key": "any"})
        store = call.store("load")
        counters = [call.memory(store, f"/counter-{number}", "0") for number in range(COUNTERS)]
        many = [Client(server, f"client-{number}", store, counters) for number in range(CLIENTS)]
        ours, peer = _load(many, seconds), _load([Client(server, "alone", store, counters)], seconds / 5)
        counted = sum(_counted(call("GET", at(store, each["id"]), view="full").ok) for each in counters)
        added = ours.pop("added") + peer.pop("added")
        assert counted == added, f"{added - counted} of {added} updates were lost"
    work = (
        f"{CLIENTS} clients for {seconds:g} s, mixed: {ours['per_second']:,.0f} requests/s, p99 {ours['p99_ms']:.0f} ms"
    )
    return [
        {
            "id": "load",
            "work": work,
            "peer": f"one client alone: {peer['per_second']:,.0f} requests/s",
            "ratio": round(peer["per_second"] / ours["per_second"], 3),
            "target": None,
            "ours_us": round(1e6 / ours["per_second"], 1),
            "peer_us": round(1e6 / peer["per_second"], 1),
            **ours,
        }
    ]


def _counted(counter: Json) -> int:
    return int(counter["content"].split()[0])


def _load(clients: list[Client], seconds: float) -> dict[str, Any]:
    for client in clients:
        client.took_us.clear()
    begun = time.monotonic()
    threads = [threading.Thread(target=client.work, args=[begun + seconds]) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = time.monotonic() - begun
    took_us = [each for client in clients for each in client.took_us]
    statuses = sum((client.statuses for client in clients), Counter[int]())
    unexpected = {status: count for status, count in statuses.items() if status not in (200, 409)}
    assert not unexpected, f"answers that none should be: {unexpected}"
    return {
        "per_second": round(len(took_us) / taken, 1),
        "median_ms": round(statistics.median(took_us) / 1000, 2),
        "p99_ms": round(statistics.quantiles(took_us, n=100)[-1] / 1000, 2),
        "refused": statuses[409],
        "added": sum(client.added for client in clients),
    }


if __name__ == "__main__":
    for result in run(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0):
        print(json.dumps(result))
