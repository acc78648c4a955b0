"""Drives a Jupyter kernel through a relay: requests out, replies and outputs in.

jupyter_client's Session makes, packs and signs the messages. Its clients are not used: they want sockets of
libzmq and an event loop in the person's notebook, and cost twice the time of a warm cell.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from hmac import compare_digest
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, cast

from jupyter_client.session import DELIM, Session

from memkernel.sandbox import zmtp
from memkernel.sandbox.inside import protocol
from memkernel.sandbox.inside.protocol import frame
from memkernel.sandbox.relay import Relay
from memkernel.sandbox.work import Cell

_SHELL, _IOPUB = "1", "2"
_ASK_AGAIN_S: Final = 0.2
_OVERHEAD: Final = 1 << 16  # of a message, beside its content


def connection_info() -> dict[str, Any]:
    """What a new kernel is told: sockets below a folder of its own, and a key that nobody has yet."""
    return {
        "transport": "ipc",
        "ip": f"/tmp/mk-{secrets.token_hex(8)}/k",
        "shell_port": int(_SHELL),
        "iopub_port": int(_IOPUB),
        "stdin_port": 3,
        "control_port": 4,
        "hb_port": 5,
        "key": str(uuid.uuid4()),
        "signature_scheme": "hmac-sha256",
        "kernel_name": "python3",
    }


def _no_number(name: str) -> None:
    """NaN and Infinity are no JSON."""


class Message(NamedTuple):
    """What of a kernel's message matters: its type, the request that it belongs to, its content."""

    kind: str
    parent: str
    content: dict[str, Any]


class Driver:
    """A kernel that was started with `connection`, reached through `relay`."""

    def __init__(self, relay: Relay, connection: Mapping[str, Any], *, output_limit: int) -> None:
        self._relay = relay
        self._session = Session(key=connection["key"].encode(), username="memkernel")
        self._readers = {name: zmtp.Reader(2 * output_limit + _OVERHEAD) for name in (_SHELL, _IOPUB)}
        self._requests: dict[str, SimpleQueue[str]] = {}
        self._cells: dict[str, Cell] = {}
        self._late = 0
        self._opened = {_SHELL: threading.Event(), _IOPUB: threading.Event()}
        self._iopub = self._shell = 0

    # -- requests --

    def wait_until_ready(self, timeout_s: float, given_up: Callable[[], bool]) -> bool:
        """Until the kernel answers and its outputs reach us; False where that takes too long, or was given up.

        Raises:
            RelayClosedError: the channel has closed.
        """
        self._connect()
        answers: SimpleQueue[str] = SimpleQueue()
        deadline = time.monotonic() + timeout_s
        for opened in self._opened.values():
            while not opened.wait(_ASK_AGAIN_S):
                if time.monotonic() > deadline or given_up():
                    return False
        self._relay.write(frame(protocol.DATA, self._iopub, zmtp.SUBSCRIPTION))
        came: set[str] = set()
        asked: list[str] = []
        while time.monotonic() < deadline and not given_up():
            message_id, data = self._request("kernel_info_request", {})
            asked.append(message_id)
            self._requests[message_id] = answers
            self._relay.write(data)
            with contextlib.suppress(Empty):
                while came != {"reply", "status"}:
                    came.add(answers.get(timeout=_ASK_AGAIN_S))
                for message_id in asked:
                    self._requests.pop(message_id, None)
                return True
        return False

    def _connect(self) -> None:
        relay = self._relay
        self._iopub = relay.stream(_IOPUB, self._receiver(_IOPUB, self._on_iopub))
        self._shell = relay.stream(_SHELL, self._receiver(_SHELL, self._on_shell))
        relay.write(frame(protocol.DATA, self._iopub, zmtp.opening("SUB")))
        relay.write(frame(protocol.DATA, self._shell, zmtp.opening("DEALER", self._session.bsession)))

    def execute(self, cell: Cell, code: str, *, silent: bool = False) -> None:
        """Send a cell. What runs in the sandbox now is remembered first, so that what the cell starts can be killed."""
        content: dict[str, Any] = {
            "code": code,
            "silent": silent,
            "store_history": not silent,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,  # one cell at a time: nothing is queued that could be aborted
        }
        message_id, data = self._request("execute_request", content)
        self._cells = {message_id: cell}
        cell.sent = True
        self._relay.write(frame(protocol.MARK, 0) + data)

    def _request(self, kind: str, content: dict[str, Any]) -> tuple[str, bytes]:
        message: dict[str, Any] = self._session.msg(kind, content)  # pyright: ignore[reportUnknownMemberType] - a bare dict
        parts = self._session.serialize(message)
        return message["header"]["msg_id"], frame(protocol.DATA, self._shell, zmtp.message(parts))

    def end(self) -> None:
        """Nothing more will come."""
        for cell in self._cells.values():
            cell.end()

    # -- what comes: by the relay's thread; whatever cannot be read is dropped --

    def _receiver(self, name: str, take: Callable[[Message], None]) -> Callable[[bytes], None]:
        reader = self._readers[name]

        def receive(data: bytes) -> None:
            for cell in self._cells.values():
                cell.heard()
            messages = reader.feed(data)
            if reader.ready:
                self._opened[name].set()
            for parts in messages:
                message = self._read(parts)
                if message is not None:
                    # What a message makes of us must not cost the ones that came with it.
                    with contextlib.suppress(Exception):
                        take(message)

        return receive

    def _read(self, parts: list[bytes]) -> Message | None:
        """A message that is signed and well formed. Session.deserialize does five times the work (dates, buffers)."""
        try:
            start = parts.index(DELIM) + 1
            signature, header, parent, metadata, content = parts[start : start + 5]
            signed: bytes = self._session.sign([header, parent, metadata, content])  # pyright: ignore[reportUnknownMemberType] - a bare list
            if not compare_digest(signature, signed):
                return None
            found: Any = json.loads(content, parse_constant=_no_number)
            kind, request = json.loads(header)["msg_type"], json.loads(parent).get("msg_id")
        except Exception:  # whatever an unsigned, forged or broken message makes of it
            return None
        readable = isinstance(kind, str) and isinstance(request, str) and isinstance(found, dict)
        return Message(kind, request, cast("dict[str, Any]", found)) if readable else None

    def _on_shell(self, message: Message) -> None:
        if message.parent in self._requests:
            self._requests[message.parent].put("reply")
        elif message.parent in self._cells and message.kind == "execute_reply":
            self._cells[message.parent].on_reply(message.content)

    def _on_iopub(self, message: Message) -> None:
        if message.parent in self._requests:
            self._requests[message.parent].put("status")
        elif message.parent in self._cells and not self._cells[message.parent].over:
            self._cells[message.parent].on_iopub(message.kind, message.content)
        elif message.kind in ("stream", "display_data", "execute_result", "error"):
            self._late += 1

    def late(self) -> int:
        """Outputs of cells that were over, since this was last asked."""
        found, self._late = self._late, 0
        return found

    def dropped_bytes(self) -> int:
        """The size of the messages that were too large to be read, since this was last asked."""
        dropped = sum(reader.dropped_bytes for reader in self._readers.values())
        for reader in self._readers.values():
            reader.dropped_bytes = 0
        return dropped
