"""The rim alone: ASGI messages in, ASGI messages out, a `dispatch` of the test's own behind it."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, Final

import pytest

from memkernel.api.app import App, body_limit
from memkernel.api.messages import Request, Response
from memkernel.errors import DatabaseUnavailableError
from memkernel.models import Limits

Message = MutableMapping[str, Any]  # ASGI's own

DISCONNECT: Final[Message] = {"type": "http.disconnect"}
LIMIT: Final = 1_000


def part(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


class Visit:
    """A request to an app, and what was sent back."""

    def __init__(self, received: Iterable[Message] = (part(b""),), **scope: Any) -> None:
        self.scope: Message = {
            "type": "http",
            "method": "GET",
            "raw_path": b"/v1/memory_stores",
            "query_string": b"",
            "headers": [],
            **scope,
        }
        self.sent: list[Message] = []
        self.order: list[str] = []
        self._received = list(received)

    async def receive(self) -> Message:
        """The next message; after the last one none comes."""
        if not self._received:
            await asyncio.Event().wait()
        self.order.append("received")
        return self._received.pop(0)

    async def send(self, message: Message) -> None:
        self.order.append("sent")
        self.sent.append(message)

    @property
    def status(self) -> int:
        return self.sent[0]["status"]

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        assert not self.sent[-1].get("more_body", False)
        body = b"".join(message.get("body", b"") for message in self.sent[1:])
        assert self.headers["content-length"] == str(len(body))
        return body

    @property
    def error(self) -> dict[str, str]:
        """The envelope's `error`; its request id is the header's."""
        envelope = json.loads(self.body)
        assert (envelope["type"], envelope["request_id"]) == ("error", self.headers["request-id"])
        return envelope["error"]


def _empty(_: Request) -> Response:
    return Response(200, {"request-id": "req_1"}, b"{}")


class Rim:
    """An app whose `dispatch` keeps the requests, and answers what `answer` gives."""

    def __init__(self, answer: Callable[[Request], Response] | None = None, *, body_s: float = 30.0) -> None:
        self.requests: list[Request] = []
        self.pings = 0
        self.is_away = False
        self._answer = answer or _empty
        self.app = App(self._dispatch, self._ping, body_bytes=LIMIT, body_s=body_s)

    def _dispatch(self, request: Request) -> Response:
        self.requests.append(request)
        return self._answer(request)

    def _ping(self) -> None:
        self.pings += 1
        if self.is_away:
            raise DatabaseUnavailableError()

    def visit(self, *received: Message, **scope: Any) -> Visit:
        """One request, and its answer."""
        visit = Visit(received or (part(b""),), **scope)
        asyncio.run(self.answer(visit))
        return visit

    async def answer(self, visit: Visit) -> None:
        """Answer a request."""
        await self.app(visit.scope, visit.receive, visit.send)


def test_f_111_path_and_query_arrive_as_they_were_sent_and_headers_by_small_names() -> None:
    """F.111: an id's %2F is decoded by nobody on the way."""
    rim = Rim()
    rim.visit(
        part(b"{"),
        raw_path=b"/v1/memory_stores/a%2Fb%3F",
        query_string=b"created_at%5Bgte%5D=x&beta=true",
        method="POST",
        headers=[(b"X-Api-Key", b"k"), (b"anthropic-beta", b"a"), (b"anthropic-beta", b"b"), (b"x-odd", b"\xe9")],
    )
    (request,) = rim.requests
    assert (request.method, request.path) == ("POST", "/v1/memory_stores/a%2Fb%3F")
    assert request.query == "created_at%5Bgte%5D=x&beta=true"
    assert request.headers == {"x-api-key": "k", "anthropic-beta": "a, b", "x-odd": "é"}
    assert request.body == b"{"


def test_a_body_in_pieces_is_whole_and_the_answer_goes_back_as_it_was_given() -> None:
    given = Response(409, {"request-id": "req_7", "x-should-retry": "false"}, "ü".encode())
    rim = Rim(lambda _: given)
    visit = rim.visit(part(b"ab", more=True), part(b"", more=True), part(b"cd"))
    assert rim.requests[0].body == b"abcd"
    assert (visit.status, visit.body) == (409, given.body)
    assert visit.headers == {"request-id": "req_7", "x-should-retry": "false", "content-length": "2"}


def test_a_body_of_exactly_the_limit_is_taken() -> None:
    rim = Rim()
    assert rim.visit(part(b"a" * LIMIT), headers=[(b"content-length", str(LIMIT).encode())]).status == 200
    assert rim.requests[0].body == b"a" * LIMIT


def test_f_113_the_limit_lets_every_legal_body_through() -> None:
    """F.113; CONTRACT B.1: at least 700 KiB."""
    assert body_limit(Limits()) >= 700 * 1024
    assert body_limit(Limits(content_bytes=10_000_000)) > 60_000_000


def test_a_body_declared_too_long_is_refused_before_any_of_it_is_read() -> None:
    rim = Rim()
    visit = rim.visit(part(b"a"), headers=[(b"content-length", str(LIMIT + 1).encode())], method="POST")
    assert visit.order[:2] == ["sent", "sent"]
    assert (visit.status, visit.headers["connection"]) == (413, "close")
    assert visit.error == {"type": "request_too_large", "message": "the body is longer than 1,000 bytes"}
    assert rim.requests == []


def test_a_body_that_grows_too_long_is_refused_and_the_rest_is_let_pass() -> None:
    rim = Rim()
    pieces = [part(b"a" * 400, more=True) for _ in range(10)]
    visit = rim.visit(*pieces, part(b""))
    assert visit.order == ["received"] * 3 + ["sent"] * 2 + ["received"] * 8 + ["sent"]
    assert visit.error["type"] == "request_too_large"
    assert rim.requests == []


def test_a_body_that_does_not_end_is_not_let_pass_for_ever() -> None:
    visit = Rim().visit(part(b"a" * (LIMIT + 1), more=True))  # nothing follows
    assert visit.error["type"] == "request_too_large"


def test_a_body_that_takes_too_long_is_refused() -> None:
    visit = Rim(body_s=0.05).visit(part(b"a", more=True))
    assert (visit.status, visit.headers["connection"]) == (408, "close")
    assert visit.error == {"type": "timeout_error", "message": "the body did not arrive within 0.05 s"}


def test_who_hangs_up_while_the_body_is_read_gets_no_answer_and_is_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rim = Rim()
    with caplog.at_level(logging.INFO):
        visit = rim.visit(part(b"a", more=True), DISCONNECT)
    assert (visit.sent, rim.requests) == ([], [])
    (record,) = caplog.records
    assert (record.name, record.exc_info) == ("memkernel.access", None)
    assert record.getMessage().startswith("GET /v1/memory_stores gone ")


def test_a_dispatch_that_fails_is_a_500_that_tells_nothing() -> None:
    def answer(_: Request) -> Response:
        raise RuntimeError("postgresql://ann:secret@db/notes")

    visit = Rim(answer).visit()
    assert (visit.status, visit.error["type"]) == (500, "api_error")
    assert b"secret" not in visit.body


# -- health ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_process_is_healthy_whatever_the_database_does(method: str) -> None:
    rim = Rim()
    rim.is_away = True
    visit = rim.visit(raw_path=b"/healthz", method=method)
    assert (visit.status, visit.body, rim.pings) == (200, b'{"status":"ok"}', 0)
    assert visit.headers["request-id"].startswith("req_")


def test_it_is_ready_while_the_database_answers() -> None:
    rim = Rim()
    assert (rim.visit(raw_path=b"/readyz").status, rim.pings) == (200, 1)
    rim.is_away = True
    visit = rim.visit(raw_path=b"/readyz")
    assert (visit.status, visit.headers["retry-after"], visit.error["type"]) == (503, "1", "api_error")
    assert rim.requests == []


@pytest.mark.parametrize("path", [b"/healthz", b"/readyz"])
def test_health_is_only_asked_for(path: bytes) -> None:
    rim = Rim()
    visit = rim.visit(raw_path=path, method="POST")
    assert (visit.status, visit.headers["allow"]) == (405, "GET, HEAD")
    rim.visit(raw_path=path + b"/")
    assert [request.path for request in rim.requests] == [path.decode() + "/"]


def test_health_is_told_while_every_thread_is_busy() -> None:
    held = threading.Event()

    def answer(_: Request) -> Response:
        held.wait(30)
        return Response(200, {"request-id": "req_1"}, b"{}")

    rim = Rim(answer)

    async def look() -> None:
        busy = [asyncio.ensure_future(rim.answer(Visit())) for _ in range(20)]
        while len(rim.requests) < 16:
            await asyncio.sleep(0.01)
        for path in (b"/healthz", b"/readyz"):
            visit = Visit(raw_path=path)
            await rim.answer(visit)
            assert visit.status == 200
        assert (rim.app.at_work, len(rim.requests)) == (20, 16)
        held.set()
        await asyncio.gather(*busy)

    asyncio.run(look())
    assert (rim.app.at_work, len(rim.requests)) == (0, 20)


# -- the end of the server -------------------------------------------------------------------------


def test_a_request_that_outlives_the_server_is_answered_that_nobody_knows() -> None:
    held = threading.Event()

    def answer(_: Request) -> Response:
        held.wait(30)
        return Response(200, {"request-id": "req_1"}, b"{}")

    rim, visit = Rim(answer), Visit()

    async def end() -> None:
        answering = asyncio.ensure_future(rim.answer(visit))
        while not rim.requests:
            await asyncio.sleep(0.01)
        answering.cancel()
        await answering
        assert rim.app.at_work == 1
        held.set()

    asyncio.run(end())
    assert (visit.status, visit.headers["x-should-retry"]) == (503, "false")
    assert visit.error["message"] == "the server ends; it is unknown whether this was saved"


def test_a_body_that_outlives_the_server_is_answered_that_nothing_was_changed() -> None:
    rim, visit = Rim(), Visit([part(b"{", more=True)])

    async def end() -> None:
        answering = asyncio.ensure_future(rim.answer(visit))
        while not visit.order:
            await asyncio.sleep(0.01)
        answering.cancel()
        await answering

    asyncio.run(end())
    assert (visit.status, "x-should-retry" in visit.headers) == (503, False)
    assert visit.error["message"] == "the server ends; nothing was changed"


def test_a_change_that_outlives_the_server_in_the_queue_of_its_store_is_not_made() -> None:
    held = threading.Event()

    def hold(request: Request) -> Response:
        held.wait(30)
        return _empty(request)

    rim = Rim(hold)
    visits = [Visit(method="POST", raw_path=b"/v1/memory_stores/memstore_a/memories") for _ in range(5)]

    async def end() -> None:
        answering = [asyncio.ensure_future(rim.answer(visit)) for visit in visits]
        while len(rim.requests) < 4:
            await asyncio.sleep(0.01)
        answering[4].cancel()
        await answering[4]
        held.set()
        await asyncio.gather(*answering[:4])

    asyncio.run(end())
    assert [visit.status for visit in visits] == [200, 200, 200, 200, 503]
    assert "x-should-retry" not in visits[4].headers
    assert visits[4].error["message"] == "the server ends; nothing was changed"
    assert len(rim.requests) == 4


# -- the access log --------------------------------------------------------------------------------


def test_the_log_has_a_line_a_request_without_its_secrets(caplog: pytest.LogCaptureFixture) -> None:
    rim = Rim()
    with caplog.at_level(logging.INFO, "memkernel.access"):
        rim.visit(
            part(b"secret body"),
            method="POST",
            raw_path=b"/v1/a\x1b[31m\n",
            query_string=b"page=secret",
            headers=[(b"x-api-key", b"secret")],
        )
    (line,) = caplog.messages
    assert line.startswith("POST /v1/a\\x1b[31m\\n 200 ")
    assert " ms req_1 apikey_" in line
    assert "secret" not in line


def test_of_who_is_not_let_in_the_log_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    rim = Rim(lambda _: Response(401, {"request-id": "req_1"}, b"{}"))
    with caplog.at_level(logging.INFO, "memkernel.access"):
        rim.visit(headers=[(b"x-api-key", b"secret")])
    assert caplog.messages[0].endswith(" ms req_1 -")
