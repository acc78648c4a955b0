"""A sandbox whose cells run in a Jupyter kernel and whose commands run beside it, in whatever Place there is."""

from __future__ import annotations

import atexit
import math
import os
import threading
import time
import weakref
from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from memkernel.errors import InvalidInputError, SandboxClosedError, SandboxError
from memkernel.models import CellResult
from memkernel.sandbox.base import (
    HOME,
    ExecResult,
    OutputSink,
    Place,
    Process,
    SandboxBackend,
    SandboxSpec,
    SandboxStatus,
)
from memkernel.sandbox.follow import Followed, Follower
from memkernel.sandbox.life import Life, how, raise_if_lost
from memkernel.sandbox.output import Outputs, clean
from memkernel.sandbox.process import KernelProcess
from memkernel.sandbox.relay import RelayClosedError
from memkernel.sandbox.verdict import judge
from memkernel.sandbox.walls import check_timeout
from memkernel.sandbox.work import Cell, Command, Work, bash_argv

READY_S: Final = 60.0
_ANSWER_S: Final = 5.0  # the helper's own time-out is past, and it says nothing

Progress = Callable[[str, float | None], None]


class KernelSandbox(SandboxBackend):
    """A SandboxBackend on a Place.

    A subclass gives `kind`, `isolation`, `owner`, `check`, `put`, `get` and `_new_place`, and may give

    * `_command(text) -> str`: a bash text as it must read in the place.
    * `_folder(path) -> str`: a working directory as it is called in the place.

    The place starts `inside.kernel_argv()` with the connection info in `inside.CONNECTION`, and `inside.helper_argv()`
    with the channel as its stdin and stdout (or only the helper, told to start the kernel itself).
    """

    def __init__(self, spec: SandboxSpec) -> None:
        super().__init__(spec)
        self._place: Place | None = None
        self._life: Life | None = None
        self._closed = False
        self._pid = os.getpid()
        self._turn = threading.Lock()  # one cell at a time
        self._changing = threading.RLock()  # one launch or end at a time
        self._follower: Follower | None = None
        self._news: list[str] = []  # to be said with the next result

    # -- what a subclass gives --

    @abstractmethod
    def _new_place(self, progress: Progress | None) -> Place:
        """The place of this spec, not launched yet. An image is built here; raises as `start`."""

    def _command(self, text: str) -> str:
        return text

    def _folder(self, path: str) -> str:
        return path

    # -- life --

    def start(self, progress: Progress | None = None) -> None:
        with self._changing:
            if self._closed or self._pid != os.getpid():
                raise SandboxClosedError
            if self._place is not None:
                return
            self.check()
            self._place = self._new_place(progress)
            try:
                self._launch()
            except BaseException:
                self.stop()
                raise
            _open.add(self)

    def _launch(self) -> Life:
        """A new kernel, ready for cells."""
        with self._changing:
            assert self._place is not None
            life = self._life = Life(self._place, self.spec)
            try:
                self._make_ready(life, self._place)
            except BaseException:
                life.close()  # the next cell starts another one
                raise
            return life

    def _make_ready(self, life: Life, place: Place) -> None:
        if not life.wait_until_ready(READY_S):
            logs = clean(place.logs().strip().rpartition("\n")[2])
            why = life.exit.detail if life.exit is not None and life.exit.detail else logs
            raise SandboxError(f"the sandbox's kernel did not start{f': {why}' if why else ''}")

    def _relaunch(self) -> Life:
        with self._changing:
            if self._life is not None:
                self._life.close()
            return self._launch()

    def restart(self) -> None:
        with self._changing:
            self._check_open()
            self._relaunch()

    def stop(self) -> None:
        if self._pid != os.getpid():
            return
        with self._changing:
            self._closed = True
            _open.discard(self)
            if self._life is not None:
                self._life.close()
            if self._place is not None:
                self._place.remove()

    def status(self) -> SandboxStatus:
        if self._closed:
            return SandboxStatus("closed", "stopped")
        if self._life is None:
            return SandboxStatus("new", "not started")
        exit = self._life.exit
        if exit is None:
            return SandboxStatus("running", self.isolation)
        if exit.removed or exit.engine_lost:
            return SandboxStatus("closed", how(exit))
        return SandboxStatus("dead", f"{how(exit)}; the next cell starts a new kernel")

    def logs(self) -> str:
        if self._place is None:
            return ""
        exit = self._life.exit if self._life is not None else None
        said = clean(self._place.logs().rstrip("\n"))
        return said if exit is None else f"{said}\n{how(exit)}".lstrip("\n")

    @contextmanager
    def frozen(self) -> Generator[None]:
        if self._place is None or self._closed:
            yield
            return
        with self._place.frozen():
            yield

    def _check_open(self) -> None:
        if self._closed or self._life is None:
            raise SandboxClosedError
        if self._pid != os.getpid():
            raise SandboxClosedError("the sandbox belongs to the process that started it")
        raise_if_lost(self._life.exit)

    def _living(self) -> Life:
        """The life that works now; a kernel that died is followed by a new one."""
        self._check_open()
        with self._changing:
            self._check_open()
            assert self._life is not None
            if self._life.exit is None:
                return self._life
            self._news.append(f"{how(self._life.exit)}; a new kernel was started, and the state of the old one is lost")
            return self._relaunch()

    # -- cells --

    def _outputs(self) -> Outputs:
        return Outputs(self.spec.limits.output_bytes, f"sandbox-{self.spec.session_id[-12:]}")

    def run(self, code: str, *, timeout_s: float | None = None, on_output: OutputSink | None = None) -> CellResult:
        check_timeout(timeout_s)
        _check_text("code", code)
        with self._turn:
            began = time.monotonic()
            life, outputs = self._living(), self._outputs()
            cell = Cell(life.relay, outputs)
            follower = Follower(cell, timeout_s, on_output)
            followed = self._follow(life, cell, follower, lambda: life.driver.execute(cell, code))
            outputs.left_out(life.driver.dropped_bytes())
            return self._result(life, cell, outputs, followed, began)

    def bash(self, command: str, *, timeout_s: float | None = None, on_output: OutputSink | None = None) -> CellResult:
        check_timeout(timeout_s)
        _check_text("command", command)
        with self._turn:
            began = time.monotonic()
            life, outputs = self._living(), self._outputs()
            argv, stdin = bash_argv(self._command(command))
            work = Command(life.relay, self.spec.limits.output_bytes, outputs)
            follower = Follower(work, timeout_s, on_output)
            folder = self._folder(HOME)
            followed = self._follow(life, work, follower, lambda: work.start(argv, stdin=stdin, cwd=folder))
            return self._result(life, work, outputs, followed, began)

    def _follow(self, life: Life, work: Work, follower: Follower, begin: Callable[[], None]) -> Followed:
        self._follower = follower
        try:
            with life.running(work):
                followed = follower.follow(begin)
        finally:
            self._follower = None
        if followed.timed_out and not followed.given_up:
            with suppress(RelayClosedError):
                work.kill()  # what it has left behind would write on
        return followed

    def _result(self, life: Life, work: Work, outputs: Outputs, followed: Followed, began: float) -> CellResult:
        """What the caller gets; the kernel of a cell that could not be stopped is replaced."""
        duration_s = time.monotonic() - began
        verdict = judge(work, followed, life, duration_s)
        if verdict.exit is not None and self._closed:
            raise SandboxClosedError
        if followed.given_up:
            self._relaunch()
        news, self._news = self._news, []
        result = verdict.result(work, outputs, duration_s, news)
        raise_if_lost(verdict.exit, result)
        if followed.sink_error is not None:
            raise followed.sink_error
        return result

    def interrupt(self) -> None:
        follower = self._follower
        if follower is not None:
            follower.interrupt()

    # -- commands --

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float | None = None,
        cwd: str = HOME,
        environment: Mapping[str, str] | None = None,
    ) -> ExecResult:
        check_timeout(timeout_s)
        if not argv:
            raise InvalidInputError("a command of no words is none")
        for word in argv:
            _check_text("a word of the command", word)
        life = self._living()
        began = time.monotonic()
        work = Command(life.relay, self.spec.limits.output_bytes)
        try:
            work.start(argv, stdin=stdin, cwd=self._folder(cwd), environment=environment or {}, timeout_s=timeout_s)
        except RelayClosedError:
            work.end()
        with life.running(work):
            self._wait_for(work, life, timeout_s)
        if work.exit_code is None:
            exit = life.wait_for_exit()
            raise_if_lost(exit)
            raise SandboxClosedError(f"the sandbox ended while {argv[0]} ran: {how(exit)}")
        return ExecResult(
            work.exit_code, work.stdout, work.stderr, work.timed_out, work.truncated, time.monotonic() - began
        )

    def process(self, argv: Sequence[str]) -> Process:
        return KernelProcess(self._living(), argv, cwd=self._folder(HOME), check=self._check_open)

    def _wait_for(self, work: Command, life: Life, timeout_s: float | None) -> None:
        deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s + _ANSWER_S
        try:
            while not work.over and time.monotonic() < deadline:
                work.wait(1.0)
        except BaseException:
            with suppress(RelayClosedError):
                work.kill()
            raise
        if not work.over:
            life.end("its helper did not answer")


def _check_text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise InvalidInputError(f"{name} is no text but {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(f"{name} is no text: it has half a character in it") from None


_open: weakref.WeakSet[KernelSandbox] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Registered with this module: whoever saves something at the exit did so before, as later registered."""
    for sandbox in list(_open):
        with suppress(Exception):
            sandbox.stop()
