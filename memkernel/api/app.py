"""The rim: a request off the wire, read whole, `dispatch` on a thread, the answer back (CONTRACT B.1)."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final
from urllib.parse import unquote
from weakref import WeakValueDictionary

from starlette.requests import ClientDisconnect
from starlette.requests import Request as Incoming
from starlette.types import Receive, Scope, Send

from memkernel import ids
from memkernel.api import errors
from memkernel.api.auth import key_id
from memkernel.api.messages import Request, Response
from memkernel.errors import ApiError
from memkernel.models import Limits
from memkernel.store.workspaces import CONNECTIONS

_BODY_S: Final = 60.0
_LINGER_S: Final = 2.0
_LOGGED_CHARS: Final = 500
_CLOSE: Final = {"connection": "close"}
_READY: Final = "/readyz"
_HEALTH: Final = ("/healthz", _READY)
_AT_ONCE: Final = 4
_ONE_BY_ONE: Final = re.compile("/v1/(memory_stores/[^/]+|sessions)")
"""Changes below one of these paths wait for each other in PostgreSQL: more than four of them would only hold threads,
all of them where a store is locked for long, and stop the others."""
_access: Final = logging.getLogger("memkernel.access")


def body_limit(limits: Limits) -> int:
    """Bytes that no legal body exceeds: JSON makes up to six of one, and 100 KiB are for what is around the content."""
    return limits.content_bytes * 6 + 100 * 1024


class App:
    """An ASGI application around `dispatch`: also health routes, and a line a request in the log `memkernel.access`."""

    def __init__(
        self,
        dispatch: Callable[[Request], Response],
        ping: Callable[[], object],
        *,
        body_bytes: int,
        body_s: float = _BODY_S,
    ) -> None:
        """Nothing runs yet.

        Args:
            dispatch: answers a request; it is called on a thread.
            ping: asks the database whether it answers, and raises if not.
            body_bytes: a longer body is refused with 413.
            body_s: one that takes longer, with 408.
        """
        self._dispatch, self._ping = dispatch, ping
        self._body_bytes, self._body_s = body_bytes, body_s
        # anyio's threads are not used: idle ones keep a process, a notebook's kernel, from ending.
        self._threads = ThreadPoolExecutor(CONNECTIONS, "memkernel-api")
        self._readiness = ThreadPoolExecutor(1, "memkernel-readyz")  # not behind the requests
        self._at_work = set[Future[Response]]()
        self._gates = WeakValueDictionary[str, asyncio.Semaphore]()

    @property
    def at_work(self) -> int:
        """How many requests a thread is busy with, or has still to begin."""
        return len(self._at_work)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        begun = time.monotonic()
        head, incoming, response = _head(scope), Incoming(scope, receive), None
        with suppress(ClientDisconnect):
            response = await self._answer(head, incoming)
            await _send(response, incoming, send)
        _log(head, response, time.monotonic() - begun)

    async def _answer(self, head: Request, incoming: Incoming) -> Response:
        try:
            if head.path in _HEALTH:
                return await self._health(head)
            body = await self._read(incoming)
            return await self._in_turn(replace(head, body=body))
        except ClientDisconnect:
            raise
        except Exception as error:
            return errors.response(error)

    async def _health(self, head: Request) -> Response:
        if head.method not in ("GET", "HEAD"):
            raise ApiError(405, f"{head.method} is not a method of {head.path}", headers={"allow": "GET, HEAD"})
        return await self._on(self._readiness, self._ready) if head.path == _READY else _well()

    def _ready(self) -> Response:
        self._ping()
        return _well()

    async def _read(self, incoming: Incoming) -> bytes:
        """The whole body.

        Raises:
            ApiError: 413, it is too long, or declared so; 408, it does not come.
            ClientDisconnect: nor does anything else.
        """
        if int(incoming.headers.get("content-length", 0)) > self._body_bytes:
            raise self._too_large()
        body = bytearray()
        try:
            async with asyncio.timeout(self._body_s):
                async for chunk in incoming.stream():
                    body += chunk
                    if len(body) > self._body_bytes:
                        raise self._too_large()
        except TimeoutError:
            sentence = f"the body did not arrive within {self._body_s:g} s"
            raise ApiError(408, sentence, headers=_CLOSE) from None
        except asyncio.CancelledError:  # the server ends, and has waited long enough; so it is below
            raise _unbegun() from None
        return bytes(body)

    def _too_large(self) -> ApiError:
        sentence = f"the body is longer than {self._body_bytes:,} bytes"
        return ApiError(413, sentence, headers=_CLOSE)

    async def _in_turn(self, request: Request) -> Response:
        work = partial(self._dispatch, request)
        place = None if request.method == "GET" else _ONE_BY_ONE.match(unquote(request.path))
        if place is None:
            return await self._on(self._threads, work)
        gate = self._gates.setdefault(place[0], asyncio.Semaphore(_AT_ONCE))
        try:
            await gate.acquire()
        except asyncio.CancelledError:
            raise _unbegun() from None
        try:
            return await self._on(self._threads, work)
        finally:
            gate.release()

    async def _on(self, threads: ThreadPoolExecutor, work: Callable[[], Response]) -> Response:
        future = threads.submit(work)
        self._at_work.add(future)
        future.add_done_callback(self._at_work.discard)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            sentence = "the server ends; it is unknown whether this was saved"
            raise ApiError(503, sentence, headers={**errors.NO_RETRY, **_CLOSE}) from None


def _unbegun() -> ApiError:
    return ApiError(503, "the server ends; nothing was changed", headers=_CLOSE)


def _head(scope: Scope) -> Request:
    headers = dict[str, str]()
    for name, value in scope["headers"]:
        said = value.decode("latin-1")
        key = name.decode("latin-1").lower()
        headers[key] = f"{headers[key]}, {said}" if key in headers else said
    path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    return Request(scope["method"], path, query, headers)


def _well() -> Response:
    return Response(200, {"content-type": "application/json", "request-id": ids.mint("req")}, b'{"status":"ok"}')


async def _send(response: Response, incoming: Incoming, send: Send) -> None:
    headers = {**response.headers, "content-length": str(len(response.body))}
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": response.status, "headers": encoded})
    if response.status == 413:  # a connection that is closed while a body still comes could cut the answer off
        await send({"type": "http.response.body", "body": response.body, "more_body": True})
        await _drain(incoming)
        await send({"type": "http.response.body"})
    else:
        await send({"type": "http.response.body", "body": response.body})


async def _drain(incoming: Incoming) -> None:
    with suppress(ClientDisconnect, TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            async for _ in incoming.stream():
                pass


def _log(head: Request, response: Response | None, taken_s: float) -> None:
    """One line: nothing of the query, the headers or the body; the key only by its id."""
    if response is None:
        _access.info("%s %s gone %.1f ms", *map(_printable, (head.method, head.path)), taken_s * 1000)
        return
    said = (response.status, taken_s * 1000, response.headers["request-id"])
    known = key_id(head) if response.status != 401 else ""
    _access.info("%s %s %d %.1f ms %s %s", *map(_printable, (head.method, head.path)), *said, known or "-")


def _printable(text: str) -> str:
    return text[:_LOGGED_CHARS].encode("unicode_escape").decode()
