"""A model that follows a script: a local server that speaks the Messages API, so that the real SDK is always used.

It answers `POST /v1/messages`, streaming or not, and `/v1/messages/count_tokens`, on 127.0.0.1 alone. It refuses the
conversations that the real API refuses.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import socket
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from memkernel.agent import cache_marks, conversation, rules, script
from memkernel.agent.script import Body, Failure, Reply

if TYPE_CHECKING:
    import anthropic
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

Responder: TypeAlias = Callable[[Body], Reply | Failure]

_START_S = 20.0
_lock = threading.Lock()


class ScriptedModel:
    """A scripted model; a context manager that serves from entry to exit.

    Attributes:
        requests: the bodies of all requests so far, as JSON.
        headers: their headers.
        url: where it answers, `http://127.0.0.1:…`.
    """

    def __init__(self, answers: Responder | Iterable[Reply | Failure] = rules.answer) -> None:
        """Make a model that does not serve yet.

        Args:
            answers: one reply a request, in order; or a function from the request's body to the reply. By default
                the rules of `rules.answer`.
        """
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self._respond = answers if callable(answers) else _in_order(answers)
        self._scripts: dict[str, Responder] = {}
        self._clients: list[anthropic.Anthropic] = []
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def client(self, answers: Responder | None = None, **options: Any) -> anthropic.Anthropic:
        """The SDK's client for this model, closed with it.

        Args:
            answers: who answers this client alone, at an address of its own; the model's own answers where left out.
            options: those of `anthropic.Anthropic`.
        """
        import anthropic

        # The way to 127.0.0.1 leads through no proxy, whatever the environment says.
        direct = anthropic.DefaultHttpxClient(trust_env=False)
        url = self.url if answers is None else f"{self.url}/{self._address(answers)}"
        given: dict[str, Any] = {"base_url": url, "api_key": "scripted", "http_client": direct, **options}
        self._clients.append(anthropic.Anthropic(**given))
        return self._clients[-1]

    def follow(self, answers: Responder | Iterable[Reply | Failure]) -> None:
        """From now on, answer so; the requests and clients so far are let go."""
        self._respond = answers if callable(answers) else _in_order(answers)
        self.requests, self.headers = [], []
        self._close_clients()

    def _address(self, answers: Responder) -> str:
        name = f"script_{len(self._scripts) + 1}"
        self._scripts[name] = answers
        return name

    def _close_clients(self) -> None:
        self._scripts = {}
        while self._clients:
            self._clients.pop().close()

    def start(self) -> None:
        """Begin to serve.

        Raises:
            TimeoutError: the server did not come up within 20 s.
        """
        import uvicorn

        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(
            self._app(), lifespan="off", ws="none", http="h11", loop="asyncio", log_config=None, log_level="critical"
        )
        server = uvicorn.Server(config)
        self._server = server
        self._thread = threading.Thread(
            target=server.run, args=([listener],), name="memkernel-scripted-model", daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + _START_S
        while not server.started:
            if time.monotonic() > deadline:
                raise TimeoutError("the scripted model did not start")
            time.sleep(0.005)

    def stop(self) -> None:
        """Serve no longer; replies that are under way break off."""
        self._close_clients()
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(timeout=_START_S)
        self._server = self._thread = None

    # -- HTTP --------------------------------------------------------------------------------------

    def _app(self) -> Starlette:
        from starlette.applications import Starlette
        from starlette.routing import Route

        return Starlette(
            routes=[
                Route("/v1/messages", self._messages, methods=["POST"]),
                Route("/v1/messages/count_tokens", self._count_tokens, methods=["POST"]),
                Route("/{script}/v1/messages", self._messages, methods=["POST"]),
                Route("/{script}/v1/messages/count_tokens", self._count_tokens, methods=["POST"]),
            ]
        )

    async def _count_tokens(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        return JSONResponse({"input_tokens": script.count_tokens(await request.json())})

    async def _messages(self, request: Request) -> Response:
        from starlette.responses import HTMLResponse, JSONResponse, StreamingResponse

        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        respond = self._scripts.get(request.path_params.get("script", ""), self._respond)
        said = _refusal(body) or respond(body)
        identity = {"request-id": f"req_{uuid.uuid4().hex[:24]}"}
        if isinstance(said, Failure) and said.page:
            return HTMLResponse(said.page, said.status, dict(said.headers))
        if isinstance(said, Failure):
            envelope = script.error_envelope(said.error_type, said.message, identity["request-id"])
            return JSONResponse(envelope, said.status, {**identity, **said.headers})
        if not body.get("stream"):
            await asyncio.sleep(said.wait_s)
            return JSONResponse(script.message(said, body), headers=identity)
        return StreamingResponse(_stream(said, body), media_type="text/event-stream", headers=identity)


class _Cut(Exception):  # noqa: N818  # no error: the script wants the connection to break here
    pass


async def _stream(said: Reply, body: Body) -> AsyncIterator[bytes]:
    await asyncio.sleep(said.wait_s)
    for event in script.events(said, body):
        yield script.sse(event)
        await asyncio.sleep(said.pause_s)
    if said.breaks == "cut":
        raise _Cut
    if said.breaks == "hangs":
        await asyncio.Event().wait()


def _refusal(body: Body) -> Failure | None:
    """What the real API says to a request that it does not take."""
    missing = [name for name in ("model", "max_tokens", "messages") if name not in body]
    if missing:
        return Failure(400, "invalid_request_error", f"{missing[0]}: Field required")
    complaint = conversation.complaint(body["messages"]) or cache_marks.complaint(body)
    return Failure(400, "invalid_request_error", complaint) if complaint else None


def _in_order(answers: Iterable[Reply | Failure]) -> Responder:
    left = iter(answers)
    spent = Failure(400, "invalid_request_error", "the script has no further reply")
    return lambda _: next(left, spent)


def stand_in(answers: Responder | None = None) -> anthropic.Anthropic:
    """A client of the scripted model of this process, which the first call starts; it stops with the process.

    Args:
        answers: who answers; the rules of `rules.answer` where left out.
    """
    with _lock:
        model, ruled = _stand_in(os.getpid())
        return ruled if answers is None else model.client(answers)


@functools.cache
def _stand_in(_pid: int) -> tuple[ScriptedModel, anthropic.Anthropic]:
    """Of each process its own: a forked child would have the object, but not its thread."""
    model = ScriptedModel()
    atexit.register(model.stop)  # first: an interrupt may come while it starts
    model.start()
    return model, model.client()
