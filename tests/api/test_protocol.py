"""Connections on which nothing whole ever comes."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import pytest

from memkernel.api import protocol
from memkernel.api.server import Serving, open_port
from memkernel.models import Limits
from memkernel.store import Database
from tests.api.held import held
from tests.runtime.processes import wait_until

HEAD: Final = b"Host: localhost\r\nX-Api-Key: any\r\n"


@pytest.fixture
def hasty(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    """A server in this process that waits for a head a fifth of a second, or twice that."""
    monkeypatch.setattr(protocol, "HEAD_S", 0.2)
    with Database(dsn) as database:
        serving = Serving(database, "a database", open_port("127.0.0.1", 0), limits=Limits())
        serving.start()
        yield serving
        serving.stop()


def connect(serving: Serving) -> socket.socket:
    where = urlsplit(serving.url)
    return socket.create_connection((where.hostname or "", where.port or 0), timeout=30)


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /healthz HTTP/1.1\r\nHost:", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HT"],
    ids=["nothing", "half a head", "half a second head"],
)
def test_a_connection_on_which_no_whole_head_comes_is_closed(hasty: Serving, sent: bytes) -> None:
    with connect(hasty) as connection:
        connection.sendall(sent)
        answer = bytearray()
        while piece := connection.recv(65536):
            answer += piece
    assert answer.count(b"HTTP/1.1 200") == sent.count(b"\r\n\r\n")


def test_what_takes_its_time_after_the_head_does_so(hasty: Serving, dsn: str) -> None:
    """A slow body, then an answer that waits for a lock: each as long as several time-outs."""
    with Database(dsn) as database:
        store = database.memory_stores.create(name="Notes").id
    body = b'{"path": "/a.md", "content": "text"}'
    first = f"POST /v1/memory_stores/{store}/memories HTTP/1.1\r\nContent-Length: {len(body)}\r\n".encode()
    with connect(hasty) as connection:
        connection.sendall(first + HEAD + b"Connection: close\r\n\r\n")
        for byte in body:
            time.sleep(0.03)
            connection.sendall(bytes([byte]))
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    with connect(hasty) as connection:
        with held(dsn, store) as waiting:
            connection.sendall(first + HEAD + b"\r\n" + body.replace(b"/a.md", b"/b.md"))
            wait_until(waiting)
            time.sleep(1.0)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
