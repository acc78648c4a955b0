"""IPython for the tests: a shell in this process, and real kernels behind jupyter_client."""

from __future__ import annotations

import atexit
import os
import queue
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from jupyter_client.manager import KernelManager
from traitlets.config import Config

import memkernel as mk

PATIENCE_S = 60.0


# -- a shell in this process ---------------------------------------------------------------------


class Shell:
    """An InteractiveShell that forgets everything afterwards; `run` gives a cell's result or raises its error."""

    def __init__(self, ipython: InteractiveShell) -> None:
        self.ipython: Any = ipython  # IPython's annotations are partial

    def run(self, cell: str) -> Any:
        """The value of the cell's last expression."""
        result = self.try_to_run(cell)
        result.raise_error()
        return result.result

    def try_to_run(self, cell: str) -> ExecutionResult:
        """What became of the cell."""
        return self.ipython.run_cell(cell, store_history=False)

    def value(self, name: str) -> Any:
        """A variable of the notebook."""
        return self.ipython.user_ns[name]

    def complete(self, line: str) -> list[str]:
        """The completions at the end of the line."""
        from IPython.core.completer import provisionalcompleter

        with provisionalcompleter():
            return [each.text for each in self.ipython.Completer.completions(line, len(line))]


@pytest.fixture
def bare_shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Shell]:
    """A shell without the extension, in an empty home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
    ipython: Any = InteractiveShell.instance(config=Config({"HistoryAccessor": {"enabled": False}}))
    try:
        yield Shell(ipython)
    finally:
        if "memkernel" in ipython.extension_manager.loaded:
            ipython.extension_manager.unload_extension("memkernel")
        atexit.unregister(ipython.atexit_operations)
        ipython.atexit_operations()
        InteractiveShell.clear_instance()


# -- a kernel in a process of its own ------------------------------------------------------------


@dataclass
class Reply:
    """What a kernel answered to a cell. `owners`: the cells that what it showed meanwhile belongs to."""

    status: str
    ename: str = ""
    evalue: str = ""
    traceback: list[str] = field(default_factory=list[str])
    stdout: str = ""
    stderr: str = ""
    outputs: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    displays: list[str] = field(default_factory=list[str], repr=False)
    updates: int = 0
    owners: set[str] = field(default_factory=set[str], repr=False)
    deadline: float = field(default_factory=lambda: time.monotonic() + PATIENCE_S, repr=False)

    @property
    def text(self) -> str:
        """The plain text of all outputs."""
        return "\n".join(output.get("text/plain", "") for output in self.outputs)

    @property
    def html(self) -> str:
        """The HTML of all outputs."""
        return "\n".join(output.get("text/html", "") for output in self.outputs)


_SHOWS = ("stream", "display_data", "execute_result", "update_display_data")


class Kernel:
    """A real ipykernel. Messages travel over ipc sockets: no port can be taken by somebody else (fault 50)."""

    def __init__(self, environment: dict[str, str], directory: Path) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="mk"))  # short: a socket's path has at most 107 bytes
        # jupyter_client makes its blocking methods from asynchronous ones at run time: they have no types.
        self._manager: Any = KernelManager(
            transport="ipc", connection_file=str(self._directory / "kernel.json"), kernel_name="python3"
        )
        self._manager.kernel_spec.argv[0] = sys.executable
        self._manager.start_kernel(env=environment, cwd=str(directory))
        self._client: Any = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=PATIENCE_S)
        self._replies: dict[str, Reply] = {}

    @property
    def pid(self) -> int:
        """The kernel's process."""
        return self._manager.provisioner.process.pid

    def close(self) -> None:
        """End the kernel."""
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()
        shutil.rmtree(self._directory, ignore_errors=True)

    def shut_down(self) -> None:
        """End it in order, as a notebook does that is closed."""
        self._manager.shutdown_kernel(now=False)

    def restart(self, *, now: bool = False) -> None:
        """The restart button; `now` kills the kernel, as it is done to a busy one."""
        self._manager.restart_kernel(now=now)
        self._client.wait_for_ready(timeout=PATIENCE_S)

    def interrupt(self) -> None:
        """The stop button."""
        self._manager.interrupt_kernel()

    def run(self, code: str, *, answers: list[str] | None = None, stop_on_error: bool = True) -> Reply:
        """Run a cell. `answers` go to its questions; without them stdin is not allowed."""
        return self.reply(self.send(code, allow_stdin=answers is not None, stop_on_error=stop_on_error), answers)

    def send(self, code: str, *, allow_stdin: bool = False, stop_on_error: bool = True) -> str:
        """Send a cell without waiting for it; the id of the message."""
        message_id = self._client.execute(code, allow_stdin=allow_stdin, stop_on_error=stop_on_error)
        self._replies[message_id] = Reply("running")
        return message_id

    def reply(self, message_id: str, answers: list[str] | None = None) -> Reply:
        """The answer to a cell that was sent; cells are answered in their order."""
        left = list(answers or [])
        while not self._take_next(message_id):
            if left:
                self._answer(left)
        while (message := self._client.get_shell_msg(timeout=PATIENCE_S))["parent_header"]["msg_id"] != message_id:
            pass
        reply = self._replies.pop(message_id)
        reply.status = message["content"]["status"]
        return reply

    def updates(self, message_id: str) -> int:
        """How often a cell that runs has replaced its output so far."""
        return self._replies[message_id].updates

    def peek(self, message_id: str) -> Reply:
        """What a cell that runs has shown so far."""
        return self._replies[message_id]

    def wait_until(self, message_id: str, happened: Callable[[Reply], bool]) -> None:
        """Wait until a cell that runs has shown something."""
        while not happened(self._replies[message_id]):
            assert not self._take_next(message_id), "the cell ended without it"

    def _take_next(self, message_id: str) -> bool:
        """Take one message in; whether the cell is over."""
        reply = self._replies[message_id]
        assert time.monotonic() < reply.deadline, "the kernel did not answer in time"
        try:
            message = self._client.get_iopub_msg(timeout=0.2)
        except queue.Empty:
            return False
        if message["msg_type"] in _SHOWS:
            reply.owners.add(message["parent_header"].get("msg_id", ""))
        return message["parent_header"].get("msg_id") == message_id and _take(message, reply)

    def _answer(self, left: list[str]) -> None:
        try:
            self._client.get_stdin_msg(timeout=0.05)
        except queue.Empty:
            return
        self._client.input(left.pop(0))

    def question(self) -> str:
        """Wait for the question of a cell that runs, and leave it without an answer."""
        return self._client.get_stdin_msg(timeout=PATIENCE_S)["content"]["prompt"]

    def subshell(self) -> str:
        """A new subshell, as JupyterLab has one for the messages of widgets."""
        self._client.control_channel.send(self._client.session.msg("create_subshell_request", {}))
        content = self._client.get_control_msg(timeout=PATIENCE_S)["content"]
        assert content["status"] == "ok"
        return content["subshell_id"]

    def ask_widget(self, model_id: str, method: str, *, subshell: str, **params: Any) -> None:
        """Send a request to a widget as its page does, and wait for nothing."""
        asked = {"method": "custom", "content": {"id": 1, "method": method, "params": params}}
        message = self._client.session.msg("comm_msg", {"comm_id": model_id, "data": asked})
        message["header"]["subshell_id"] = subshell
        self._client.shell_channel.send(message)

    def complete(self, code: str) -> tuple[list[str], int]:
        """The completions at the end of the code, and where they begin."""
        content = self._client.complete(code, len(code), reply=True, timeout=PATIENCE_S)["content"]
        return content["matches"], content["cursor_start"]

    def inspect(self, code: str) -> str:
        """What `code?` shows."""
        content = self._client.inspect(code, len(code), reply=True, timeout=PATIENCE_S)["content"]
        return content["data"].get("text/plain", "")


def _take(message: dict[str, Any], reply: Reply) -> bool:
    """Put a message's content where it belongs; whether the cell is over."""
    kind, content = message["msg_type"], message["content"]
    if kind == "stream":
        setattr(reply, content["name"], getattr(reply, content["name"]) + content["text"])
    elif kind in ("execute_result", "display_data"):
        reply.outputs.append(content["data"])
        reply.displays.append(content.get("transient", {}).get("display_id", ""))
    elif kind == "update_display_data":
        reply.updates += 1
        shown = content["transient"]["display_id"]
        if shown in reply.displays:  # else an earlier cell shows it
            reply.outputs[reply.displays.index(shown)] = content["data"]
    elif kind == "error":
        reply.ename, reply.evalue, reply.traceback = content["ename"], content["evalue"], content["traceback"]
    return kind == "status" and content["execution_state"] == "idle"


def kernel_environment(home: Path, **more: str) -> dict[str, str]:
    """What a kernel sees of this machine: hardly anything, and an empty home."""
    named = ("PATH", "LANG", "TMPDIR", "VIRTUAL_ENV", "DOCKER_HOST")
    kept = {name: value for name, value in os.environ.items() if name in named}
    return kept | {"HOME": str(home), "IPYTHONDIR": str(home / "ipython"), "PYTHONWARNINGS": "default"} | more


# -- with the extension, on the test's database ---------------------------------------------------


@pytest.fixture
def somebody_else(dsn: str) -> Iterator[mk.Connection]:
    """Another connection to the test's database."""
    with mk.connect(dsn) as connection:
        yield connection


@pytest.fixture
def shell(bare_shell: Shell, dsn: str, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell with the extension loaded and a store in use, `Team notes`."""
    monkeypatch.setenv("MEMKERNEL_DSN", dsn)
    bare_shell.run("%load_ext memkernel")
    bare_shell.run('%memory use "Team notes" --create -q')
    return bare_shell


@pytest.fixture
def bare_kernel(dsn: str, tmp_path: Path) -> Iterator[Kernel]:
    """A kernel without the extension; its environment names the test's database, its home is empty."""
    kernel = Kernel(kernel_environment(tmp_path, MEMKERNEL_DSN=dsn), tmp_path)
    try:
        yield kernel
    finally:
        kernel.close()


@pytest.fixture
def kernel(bare_kernel: Kernel) -> Kernel:
    """A kernel with the extension loaded and a store in use, `Team notes`."""
    assert bare_kernel.run("%load_ext memkernel").status == "ok"
    assert bare_kernel.run('%memory use "Team notes" --create -q').status == "ok"
    return bare_kernel
