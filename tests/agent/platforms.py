"""Stand-ins for the platforms that serve the Messages API in ways of their own, on 127.0.0.1: each answers a request at
its own address, to its own kind of credentials, in its own framing, and nothing else."""

from __future__ import annotations

import base64
import json
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

from memkernel.agent import script
from memkernel.agent.script import Event, Failure, Reply

MODEL: Final = "claude-sonnet-5-5"


@dataclass(frozen=True)
class Wire:
    """How a platform is spoken to.

    Attributes:
        path: of a streaming request; its group `model`, if any, is the model's name.
        credentials: what the Authorization header, or the API key's, has to match.
        header: which header that is.
        framing: event -> bytes.
    """

    path: str
    credentials: str
    header: str = "authorization"
    framing: Callable[[Event], bytes] = script.sse


def aws_frame(event: Event) -> bytes:
    """An event as Amazon's binary event stream has it; an error is a frame of another kind."""
    if event["type"] == "error":
        headers = {":message-type": "exception", ":exception-type": event["error"]["type"]}
        payload: Mapping[str, str] = {"message": event["error"]["message"]}
    else:
        headers = {":message-type": "event", ":event-type": "chunk", ":content-type": "application/json"}
        payload = {"bytes": base64.b64encode(json.dumps(event).encode()).decode()}
    packed = b"".join(_aws_header(name, value) for name, value in headers.items())
    body = json.dumps(payload).encode()
    prelude = (len(packed) + len(body) + 16).to_bytes(4, "big") + len(packed).to_bytes(4, "big")
    whole = prelude + zlib.crc32(prelude).to_bytes(4, "big") + packed + body
    return whole + zlib.crc32(whole).to_bytes(4, "big")


def _aws_header(name: str, value: str) -> bytes:
    return bytes([len(name)]) + name.encode() + b"\x07" + len(value).to_bytes(2, "big") + value.encode()


_SIGNED: Final = r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/us-east-1/%s/aws4_request, .*Signature=[0-9a-f]{64}"

WIRES: Final[Mapping[str, Wire]] = {
    "bedrock": Wire(r"/model/(?P<model>[^/]+)/invoke-with-response-stream", _SIGNED % "bedrock", framing=aws_frame),
    "bedrock key": Wire(r"/model/(?P<model>[^/]+)/invoke-with-response-stream", "Bearer k", framing=aws_frame),
    "mantle": Wire(r"/anthropic/v1/messages(\?beta=true)?", _SIGNED % "bedrock-mantle"),
    "vertex": Wire(
        r"/v1/projects/p/locations/us-east5/publishers/anthropic/models/(?P<model>[^/:]+):streamRawPredict", "Bearer t"
    ),
    "foundry": Wire(r"/anthropic/v1/messages(\?beta=true)?", "k", header="api-key"),
    "aws": Wire(r"/v1/messages(\?beta=true)?", _SIGNED % "aws-external-anthropic"),
    "google cloud": Wire(r"/v1/messages(\?beta=true)?", "Bearer t"),
    "gateway": Wire(r"/team/claude/v1/messages(\?beta=true)?", "Bearer of-the-gateway"),
}


@dataclass
class Platform:
    """A platform that answers with a script; a context manager.

    Attributes:
        seen: the path, the headers and the body of every request, in order.
    """

    wire: Wire
    answers: Sequence[Reply | Failure]
    seen: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list[Any])

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Reply | Failure:
        """The next reply, to a request that the platform would take."""
        self.seen.append((path, headers, body))
        if not re.fullmatch(self.wire.path, path):
            return Failure(404, "not_found_error", f"no such address: {path}")
        if not re.fullmatch(self.wire.credentials, headers.get(self.wire.header, "")):
            return Failure(401, "authentication_error", f"not signed: {headers}")
        return self.answers[len(self.seen) - 1]

    def frames(self, said: Reply, body: dict[str, Any]) -> Iterator[bytes]:
        """A reply as it is sent."""
        return map(self.wire.framing, script.events(said, {"model": MODEL, "messages": [], **body}))


def _handler(platform: Platform) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            said = platform.answer(self.path, headers, body)
            if isinstance(said, Failure):
                self._send(said.status, [json.dumps({"message": said.message}).encode()], said.headers)
            else:
                self._send(200, platform.frames(said, body), {})

        def _send(self, status: int, chunks: Any, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in {"connection": "close", **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            for chunk in chunks:
                self.wfile.write(chunk)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler
