"""The agent's six tools in a sandbox: bash, read, write, edit, glob, grep (CONTRACT.md E).

They run in a process of their own beside the kernel (`inside.tools`), never here. What it answers is untrusted: a text,
or the data of an image or a PDF, from which the content block is made here.
"""

from __future__ import annotations

import binascii
import json
import threading
from base64 import b64decode
from collections.abc import Mapping
from itertools import count
from typing import Any, Final, cast

from memkernel.models import ToolAnswer
from memkernel.sandbox import inside
from memkernel.sandbox.base import HOME, Process, SandboxBackend
from memkernel.sandbox.inside.tools_bash import SECONDS as BASH_SECONDS
from memkernel.sandbox.inside.tools_files import MEDIA_TYPES
from memkernel.sandbox.inside.tools_search import SECONDS as SEARCH_SECONDS
from memkernel.sandbox.toolcalls import problem_with

_SLACK_S: Final = 15.0
"""After a call's own limit, how long the server may need to kill what was started."""
_NO_ANSWER: Final = "the tools' process ended before it answered; look at what was done before doing it again"
_SHELL_GONE: Final = "bash: bash session terminated; restart required"
_INTERRUPTED: Final = "interrupted by the user"


class Toolbox:
    """The tools of one sandbox; their server is started with the first call, and anew where it is gone.

    One call at a time; `interrupt` may be called from any thread. The shell lives from call to call; where it is lost,
    with a kernel that was restarted as well, its next call says so.
    """

    def __init__(self, backend: SandboxBackend) -> None:
        self._backend = backend
        self._process: Process | None = None
        self._calling = threading.Lock()
        self._is_running = False
        self._is_interrupted = False
        self._has_shell = False
        self._ids = count(1)

    def call(self, name: str, given: Mapping[str, object]) -> ToolAnswer:
        """Run a tool. Whatever the model did wrong, or its command did, is an answer.

        Raises:
            SandboxClosedError: the sandbox is not running.
            EngineError: the engine went away.
            SandboxError: its kernel had died, and no new one starts.
            KeyboardInterrupt: as it came; what the call had started is killed.
        """
        problem = problem_with(name, given)
        if problem:
            return ToolAnswer(problem, is_error=True)
        with self._calling:
            self._is_interrupted, self._is_running = False, True
            try:
                return self._answered(name, given)
            except BaseException:
                self._kill()
                raise
            finally:
                self._is_running = False

    def interrupt(self) -> None:
        """End the call that runs and kill what it started: its answer says so. Nothing where none runs."""
        if self._is_running:
            self._is_interrupted = True  # a server that is still being started is asked nothing
            if (process := self._process) is not None:
                process.kill()

    def close(self) -> None:
        """End the server and all that it started."""
        self._kill()

    # -- one call --

    def _answered(self, name: str, given: Mapping[str, object]) -> ToolAnswer:
        process = self._server()
        if self._is_interrupted:
            return ToolAnswer(f"{name}: {_INTERRUPTED}", is_error=True)
        number = next(self._ids)
        process.write(_line({"id": number, "name": name, "given": self._mapped(name, given)}))
        seconds = _seconds(name, given)
        self._has_shell = self._has_shell or name == "bash"
        try:
            while line := process.read_line(seconds + _SLACK_S):
                if (answer := _read(line, number)) is not None:
                    return self._shown(name, answer)
            reason = _INTERRUPTED if self._is_interrupted else ""
        except TimeoutError:
            reason = f"bash command timed out after {seconds}s" if name == "bash" else f"timed out after {seconds:.0f}s"
        self._kill()
        return ToolAnswer(f"{name}: {reason}" if reason else self._ended(name), is_error=True)

    def _ended(self, name: str) -> str:
        """Why there is no answer: the kernel took the server with it, or only the server has ended."""
        status = self._backend.status()
        if status.state == "dead":
            return f"{name}: {status.detail}"
        return _SHELL_GONE if name == "bash" else f"{name}: {_NO_ANSWER}"

    def _server(self) -> Process:
        if self._process is None or not self._process.alive:
            self._kill()
            self._process = self._backend.process(inside.tools_argv(self._backend.python))
            self._process.write(_line(self._places()))
        return self._process

    def _places(self) -> dict[str, Any]:
        mounts = self._backend.spec.mounts
        return {
            "workdir": HOME,
            "roots": [mount.target for mount in mounts],
            "read_only": [mount.target for mount in mounts if mount.read_only],
            "folders": self._backend.rehoming.folders,
            "shell_is_lost": self._has_shell,
        }

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None  # not before: an interrupt of the kill leaves it to the next call

    def _mapped(self, name: str, given: Mapping[str, object]) -> dict[str, object]:
        """bash is told where things really are; the other tools' server maps paths itself."""
        command = given.get("command")
        if name != "bash" or not isinstance(command, str):
            return dict(given)
        return {**given, "command": self._backend.rehoming.bash(command)}

    def _shown(self, name: str, answer: ToolAnswer) -> ToolAnswer:
        """bash may have said where things really are."""
        if name != "bash" or not isinstance(answer.content, str):
            return answer
        return ToolAnswer(self._backend.rehoming.shown(answer.content), answer.is_error)


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _seconds(name: str, given: Mapping[str, object]) -> float:
    if name != "bash":
        return SEARCH_SECONDS
    timeout_ms = cast("int | None", given.get("timeout_ms"))
    return timeout_ms / 1000 if timeout_ms else BASH_SECONDS


def _read(line: bytes, number: int) -> ToolAnswer | None:
    """An answer to the call with this number; None where the line is none."""
    try:
        said: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    answer = cast("dict[str, object]", said if isinstance(said, dict) else {})
    if answer.get("id") != number:
        return None
    text, data, media_type = answer.get("text"), answer.get("data"), answer.get("media_type")
    if isinstance(text, str):
        return ToolAnswer(_clean(text), answer.get("is_error") is True)
    if isinstance(data, str) and media_type in MEDIA_TYPES.values():
        return _block(str(media_type), data)
    return None


def _block(media_type: str, data: str) -> ToolAnswer | None:
    try:
        b64decode(data.encode("ascii", "replace"), validate=True)
    except binascii.Error:
        return None
    kind = "document" if media_type == "application/pdf" else "image"
    return ToolAnswer(({"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}},))


def _clean(text: str) -> str:
    """Without lone surrogates, which no request can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
