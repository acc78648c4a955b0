"""P16: one `retrieve` by the official client, in process and over loopback, against the same client on empty handlers.

Run: `python -m tests.bench.bench_client`. Nothing here fails: the figures stand beside their targets. An empty handler
answers what ours answered, without looking at anything: a function in process, a Starlette route under uvicorn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Final

import anthropic

from memkernel import cluster
from memkernel.api.client import Door, HttpClient
from memkernel.api.messages import Response
from memkernel.handle.connection import connect
from tests.bench.bench_tool import Comparison, Result, text
from tests.fix_server import MemoryServer

LINES: Final = 40
"""1.7 KB, as P1 to P4 read."""

_EMPTY: Final = """
import sys, socket, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
body = sys.stdin.buffer.read()
async def answer(request):
    return Response(body, media_type="application/json")
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # so named, asyncio sets TCP_NODELAY
listener.bind(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
app = Starlette(routes=[Route("/{path:path}", answer)])
uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run([listener])
"""


class Retrieving:
    """A client that reads one memory again and again."""

    def __init__(self, client: anthropic.Anthropic, store: str, memory: str) -> None:
        self._retrieve = client.beta.memory_stores.memories.retrieve
        self._store, self._memory = store, memory

    def call(self, _: object) -> object:
        return self._retrieve(self._memory, memory_store_id=self._store)


def run(calls: int = 2_000) -> list[Result]:
    """One result for each of the two ways."""
    with tempfile.TemporaryDirectory() as home, ExitStack() as ending:
        os.chmod(home, 0o755)  # as root, the server runs under another account
        server = cluster.EmbeddedCluster(home=f"{home}/memkernel")
        ending.callback(server.stop)
        dsn = server.ensure()
        client = ending.enter_context(connect(dsn)).anthropic()
        store = client.beta.memory_stores.create(name="bench").id
        memory = client.beta.memory_stores.memories.create(store, path="/notes.md", content=text(0, LINES)).id
        body = client.beta.memory_stores.memories.with_raw_response.retrieve(memory, memory_store_id=store)
        answer = body.http_response.read()
        empty = anthropic.Anthropic(
            api_key="any", http_client=HttpClient(Door(lambda _: Response(200, dict(body.headers), answer)))
        )
        served = ending.enter_context(MemoryServer(dsn)).client()
        nothing = _client(ending.enter_context(_empty_server(answer)))
        ways = {
            "in process": (client, empty, "the same client on an empty function"),
            "over loopback": (served, nothing, "the same client on an empty Starlette route"),
        }
        return [
            Comparison({"ours": Retrieving(ours, store, memory), "peer": Retrieving(peer, store, memory)}, calls)(
                "P16", f"retrieve a memory of 1.7 KB, {way}", 1.25, lambda _: {}
            )
            | {"peer": name}
            for way, (ours, peer, name) in ways.items()
        ]


def _client(url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="any", base_url=url, http_client=anthropic.DefaultHttpxClient(trust_env=False))


@contextmanager
def _empty_server(answer: bytes) -> Generator[str]:
    process = subprocess.Popen([sys.executable, "-c", _EMPTY], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    try:
        process.stdin.write(answer)
        process.stdin.close()
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    for result in run():
        print(json.dumps(result))
