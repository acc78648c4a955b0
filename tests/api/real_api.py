"""What stands for the real API: a server on 127.0.0.1 that notes what it is sent, and always answers the same."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER: dict[str, Any] = {
    "id": "msg_x",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "data": [],
    "has_more": False,
    "access_token": "fresh",
    "expires_in": 3600,
}
"""A message, an empty page and a token in one."""


class RealApi:
    """A context manager; `seen` holds the requests' methods, paths and headers (names in lower case)."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        seen = self.seen

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                seen.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}))
                self.rfile.read(int(self.headers.get("content-length", 0)))
                body = json.dumps(ANSWER).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = answer  # noqa: N815  # the library's names

            def log_message(self, format: str, *args: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @property
    def paths(self) -> list[str]:
        """What was asked for, oldest first."""
        return [path for _, path, _ in self.seen]

    def __enter__(self) -> RealApi:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
