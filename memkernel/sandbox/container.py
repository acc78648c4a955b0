"""A container as the place where a kernel runs."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from memkernel.errors import EngineError, MemkernelError, SandboxClosedError
from memkernel.sandbox import image, outcome, probe, walls
from memkernel.sandbox.base import Exit, Place, SandboxSpec
from memkernel.sandbox.channel import ExecChannel
from memkernel.sandbox.engine import Engine
from memkernel.sandbox.inside import CONNECTION, helper_argv, kernel_argv
from memkernel.sandbox.output import clean

_LOG_LINES: Final = 100
_THAWS: Final = 20  # an engine under load refuses now and then, and what stays frozen hangs for ever


class ContainerPlace(Place):
    """A hardened container, made anew by every `launch`, so that nothing of an earlier kernel is left.

    Args:
        engine: it stays the caller's.
        spec: checked before; `walls.check_*`.
        image_id: it has python3 and ipykernel.
        who: whom the container runs as.
        main: the kernel's command; it finds the connection info in `inside.CONNECTION`.
        helper: the command of the channel, for the connection info's `ip`.
    """

    def __init__(
        self,
        engine: Engine,
        spec: SandboxSpec,
        image_id: str,
        who: walls.Identity,
        *,
        main: Sequence[str] = (),
        helper: Callable[[str], Sequence[str]] = helper_argv,
    ) -> None:
        self._engine, self._spec, self._image, self._who = engine, spec, image_id, who
        self._main, self._helper = tuple(main or kernel_argv()), helper
        self._probed = False
        self._container: str | None = None
        self._channel: ExecChannel | None = None
        self._launched_at = 0.0
        self._exit = Exit(None, detail="it was never started")
        self._ended = threading.Event()
        self._ended.set()
        self._changing = threading.RLock()
        self._frozen: str | None = None
        self._freezing = threading.RLock()  # no command starts while it is frozen: see Engine.execute

    @property
    def container_id(self) -> str | None:
        """The container, also an ended one; None before the first launch and after `remove`."""
        return self._container

    def launch(self, connection: Mapping[str, Any]) -> ExecChannel:
        """Start the kernel's container, check that it sees the mounts, and start the helper in it."""
        with self._changing:
            self.remove()
            try:
                return self._launch(connection)
            except BaseException:
                with contextlib.suppress(MemkernelError):
                    self.remove()
                raise

    def _launch(self, connection: Mapping[str, Any]) -> ExecChannel:
        body = walls.container(
            self._spec,
            image=self._image,
            main=self._main,
            who=self._who.inside,
            info=self._engine.info,
            volumes=image.volumes(self._engine, self._image),
            variables={CONNECTION: json.dumps(dict(connection), default=_text)},
        )
        self._launched_at = time.time()
        self._container = self._engine.create(body, walls.names(self._spec.session_id[-12:].lower()))
        self._engine.start(self._container)
        self._watch(self._container)
        try:
            self._channel = self.execute(self._helper(str(connection["ip"])))
            if not self._probed:  # a new kernel of the same sandbox has the same mounts
                probe.check(self.execute, self._spec.mounts, self._who)
        except SandboxClosedError as error:
            said = clean(self.logs().strip().rpartition("\n")[2]) or self._exit.detail
            raise EngineError(f"the sandbox's container ended at once: {said}") from error
        self._probed = True
        return self._channel

    def execute(self, argv: Sequence[str]) -> ExecChannel:
        """Run a command beside the kernel; the host speaks first.

        Raises:
            SandboxClosedError: there is no running container.
            EngineError: the engine refused or went away.
        """
        if self._container is None:
            raise SandboxClosedError()
        with self._freezing:
            return self._engine.execute(self._container, argv)

    # -- its end -----------------------------------------------------------------------------------

    def _watch(self, container: str) -> None:
        ended = threading.Event()
        self._ended = ended

        def wait() -> None:
            found = self._await_exit(container)
            if self._ended is ended:
                self._exit = found
            ended.set()

        threading.Thread(target=wait, name=f"memkernel-container-{container[:12]}", daemon=True).start()

    def _await_exit(self, container: str) -> Exit:
        try:
            self._engine.wait(container)
            return outcome.exit_of(self._engine.state(container))
        except SandboxClosedError:
            return Exit(None, removed=True, detail=outcome.REMOVED)
        except EngineError as error:
            return Exit(None, engine_lost=True, detail=str(error))
        except MemkernelError as error:
            return Exit(None, detail=str(error))

    def wait(self) -> Exit:
        """Block until the container has ended; how."""
        ended = self._ended
        ended.wait()
        return self._exit

    def end(self) -> None:
        """End all that runs in the container at once; the ended container stays, for its log."""
        with self._changing:
            self._close_channel()
            if self._container is not None:
                self._engine.kill(self._container)
                self._thaw()

    def remove(self) -> None:
        """Remove the container."""
        with self._changing:
            self._close_channel()
            if self._container is not None:
                self._thaw()
                self._engine.remove(self._container)
                self._ended.wait(10)
                self._container = None

    def _close_channel(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    # -- what is known of it -----------------------------------------------------------------------

    def memory_limit_was_hit(self) -> bool:
        """Whether anything in it was killed for memory since the launch."""
        if self._container is None:
            return False
        try:
            if self._engine.state(self._container).get("OOMKilled"):
                return True
            return self._engine.ran_out_of_memory(self._container, self._launched_at)
        except MemkernelError:
            return False

    def logs(self) -> str:
        """The last lines of the container's main process; empty where there is no container."""
        if self._container is None:
            return ""
        try:
            return self._engine.logs(self._container, _LOG_LINES)
        except SandboxClosedError:
            return ""

    @contextmanager
    def frozen(self) -> Generator[None]:
        """While in here nothing in the container runs; where the engine cannot do that, nothing happens."""
        with self._freezing:
            self._freeze()
            try:
                yield
            finally:
                self._thaw()

    def _freeze(self) -> None:
        container = self._container
        if container is None or self._ended.is_set():
            return
        self._frozen = container
        try:
            self._engine.pause(container)
        except MemkernelError:
            self._thaw()  # it may have been frozen for a part

    def _thaw(self) -> None:
        """Let it run on, where it is frozen: also to die, since not every engine wakes up what it kills."""
        container, self._frozen = self._frozen, None
        for _ in range(_THAWS if container is not None else 0):
            try:
                self._engine.unpause(str(container))
                return
            except SandboxClosedError:
                return
            except MemkernelError:
                with contextlib.suppress(MemkernelError):
                    if not self._engine.state(str(container)).get("Paused"):
                        return
            time.sleep(0.05)


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode()
    raise TypeError(f"{type(value).__name__} in the connection info")
