"""Processes of this machine as the place where a kernel runs: a private folder, a clean environment, no walls.

The process that is started becomes the helper, which starts the kernel, adopts whatever is orphaned below it, and ends
all of it when the channel closes. What got away nevertheless (somebody killed the helper) is found by a variable of
its environment and killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import secrets
import select
import signal
import site
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal

from memkernel import config
from memkernel.errors import SandboxError
from memkernel.folders import remove_tree
from memkernel.sandbox import private_folder, process_tree
from memkernel.sandbox.base import HOME, Channel, Exit, Mount, Place, SandboxLimits, SandboxSpec
from memkernel.sandbox.inside import CONNECTION, helper_argv, kernel_argv
from memkernel.sandbox.namespaces import FRESH, Bind, launch_argv

Level = Literal[1, 2]

MOUNTS: Final = "MEMKERNEL_MOUNTS"
"""Level 2: a variable that says, as JSON, where the sandbox's paths really are."""

_MARK: Final = "MEMKERNEL_SANDBOX"
_START_S: Final = 20.0
_END_S: Final = 5.0
_LOOK_S: Final = 0.25
_LOG_LINES: Final = 100
_LOG_BYTES: Final = 16_384

_KERNEL_CONFIG: Final = """\
import importlib.util
specification = importlib.util.spec_from_file_location("memkernel_rehome", {module!r})
module = importlib.util.module_from_spec(specification)
specification.loader.exec_module(module)
c.InteractiveShell.ast_transformers = [module.Rehoming({folders!r})]
"""


class LocalPlace(Place):
    """Processes of the caller's account, in a folder of their own.

    Args:
        spec: checked before.
        level: 1 has namespaces, in which the sandbox's paths are real; 2 has a mapping of paths.
    """

    def __init__(self, spec: SandboxSpec, level: Level) -> None:
        self._spec = spec
        self.level: Level = level
        self._folder: Path | None = None
        self._lock = -1
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: SocketChannel | None = None
        self._mark = f"{_MARK}={secrets.token_hex(16)}"
        self._watch: process_tree.Watch | None = None
        self._exit = Exit(None, detail="it was never started")
        self._ended = threading.Event()
        self._ended.set()
        self._changing = threading.RLock()

    # -- where things are --

    @property
    def folder(self) -> Path:
        """The private folder; made when it is first asked for, gone after `remove`; after a kill, with the next one."""
        with self._changing:
            if self._folder is None:
                self._folder, self._lock = private_folder.make()
            return self._folder

    def folders(self) -> dict[str, str]:
        """Paths of the sandbox, and where each really is."""
        known = {mount.target: str(mount.source) for mount in self._spec.mounts}
        return {FRESH: str(self._memory()), HOME: str(self.folder / "home")} | known

    def _memory(self) -> Path:
        """A folder that holds the stores' folders under their names: theirs, or one of links where they have none."""
        stores = {Path(mount.target).name: mount.source for mount in self._spec.mounts if mount.memory}
        parents = {source.parent if source.name == name else None for name, source in stores.items()}
        if len(parents) == 1 and (parent := parents.pop()) is not None:
            return parent
        links = self.folder / "memory"
        for name, source in stores.items():
            with contextlib.suppress(FileExistsError):
                (links / name).symlink_to(source)
        return links

    # -- its life --

    def launch(self, connection: Mapping[str, Any]) -> Channel:
        """Start the helper and, below it, the kernel; its sockets lie in the private folder, whatever `ip` says."""
        with self._changing:
            self.end()
            try:
                return self._launch(dict(connection) | {"ip": str(self.folder / "k")})
            except OSError as error:
                self.end()
                raise SandboxError(f"the local sandbox cannot be started: {error.strerror or error}") from error
            except BaseException:
                self.end()
                raise

    def _launch(self, connection: dict[str, Any]) -> Channel:
        self._write_config()
        ours, theirs = socket.socketpair()
        told_read, told = os.pipe()
        try:
            with theirs, open(self.folder / "log", "wb") as log:
                command = self._command(connection["ip"], told)
                self._process = subprocess.Popen(
                    command,
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=log,
                    env=self._environment(connection),
                    pass_fds=(told,),
                    start_new_session=True,
                )
        except BaseException:
            os.close(told_read)
            ours.close()
            raise
        finally:
            os.close(told)
        self._channel = SocketChannel(ours)
        self._start_watch(self._process)
        with open(told_read, encoding="utf-8", errors="replace") as answer:
            came, _, _ = select.select([answer], [], [], _START_S)
            if trouble := answer.read() if came else f"nothing happened for {_START_S:.0f} seconds":
                raise SandboxError(f"the local sandbox cannot be started: {trouble}")
        return self._channel

    def wait(self) -> Exit:
        """Block until the helper has ended, and nothing of what it started is left; how."""
        ended = self._ended
        ended.wait()
        return self._exit

    def end(self) -> None:
        """End all that runs there; the private folder stays."""
        with self._changing:
            if self._channel is not None:
                self._channel.close()
                self._channel = None
            if self._process is not None:
                self._process.send_signal(signal.SIGCONT)  # where the code has stopped it, it has an end to see
                if not self._ended.wait(_END_S):
                    process_tree.kill(self._process.pid)
                    self._process.kill()
                    self._ended.wait(_END_S)
            self._process = None

    def remove(self) -> None:
        """End it and remove the private folder."""
        with self._changing:
            self.end()
            if self._folder is not None:
                with contextlib.suppress(OSError):  # a file system that was mounted in it, say
                    remove_tree(self._folder)
                private_folder.let_go(self._lock)
                self._folder = None

    def _start_watch(self, process: subprocess.Popen[bytes]) -> None:
        limits = self._spec.limits
        watch = process_tree.Watch(process, memory_bytes=limits.memory_bytes, processes=limits.pids)
        ended = threading.Event()
        self._watch, self._ended = watch, ended

        def look() -> None:
            code = watch.until_the_end(_LOOK_S)
            process_tree.kill_marked(self._mark)
            if self._ended is ended:
                self._exit = Exit(128 - code if code < 0 else code, out_of_memory=watch.kernel_was_killed)
            ended.set()

        threading.Thread(target=look, name="memkernel-local-sandbox", daemon=True).start()

    # -- what is known of it --

    def memory_limit_was_hit(self) -> bool:
        """Whether anything there was killed for memory since the launch."""
        return self._watch is not None and self._watch.memory_was_hit

    def look(self) -> bool:
        """Hold what runs there now to the limits on memory and processes; whether that killed the kernel."""
        return self._watch is not None and self._watch.look()

    def hits(self) -> list[str]:
        """What was killed for another limit since this was last asked, a sentence each."""
        if self._watch is None:
            return []
        hits, self._watch.hits = self._watch.hits, []
        return hits

    def logs(self) -> str:
        """The last lines of the kernel's own output."""
        try:
            with open(self.folder / "log", "rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_BYTES))
                text = log.read().decode(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-_LOG_LINES:])

    @contextmanager
    def frozen(self) -> Generator[None]:
        """While in here all below the helper is stopped."""
        process = self._process
        stopped = process_tree.stop(process.pid) if process is not None else set[int]()
        try:
            yield
        finally:
            process_tree.go_on(stopped)

    # -- what is handed over --

    def _command(self, prefix: str, told: int) -> list[str]:
        helper = helper_argv(prefix, sys.executable, kernel=kernel_argv(sys.executable))
        limits = _limits(self._spec.limits)
        if self.level == 2:
            return launcher(told=told, binds=None, cwd=self.folders()[HOME], limits=limits, argv=helper)
        own = binds(self._spec.mounts, self.folder)
        return launcher(told=told, binds=own, cwd=HOME, limits=limits, argv=helper)

    def _environment(self, connection: Mapping[str, Any]) -> dict[str, str]:
        """The kernel's variables, from nothing: none of the caller's that could be a secret."""
        home = HOME if self.level == 1 else self.folders()[HOME]
        name, _, value = self._mark.partition("=")
        return (
            {"LANG": "C.UTF-8"}
            | config.for_programs()
            | {"PATH": _path()}
            | {"HOME": home, "USER": "sandbox", "LOGNAME": "sandbox", "IPYTHONDIR": f"{home}/.ipython"}
            | {"TMPDIR": str(self.folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
            | _python_path()
            | ({MOUNTS: json.dumps(self.folders())} if self.level == 2 else {})
            | dict(self._spec.environment)
            | {name: value, CONNECTION: json.dumps(connection)}
        )

    def _write_config(self) -> None:
        """Level 2: the kernel's IPython is told what every cell goes through before it runs."""
        profile = self.folder / "home" / ".ipython" / "profile_default"
        if self.level == 1:
            return
        remove_tree(profile)
        os.makedirs(profile)
        module = self.folder / "rehome.py"
        module.write_text(_source_of("rehome.py"), encoding="utf-8")
        text = _KERNEL_CONFIG.format(module=str(module), folders=self.folders())
        (profile / "ipython_kernel_config.py").write_text(text, encoding="utf-8")


class SocketChannel(Channel):
    """One end of a pair of sockets; the other is the stdin and stdout of a process."""

    def __init__(self, ours: socket.socket) -> None:
        self._socket = ours
        self._writing = threading.Lock()
        self._closing = threading.Lock()
        self._reading = threading.Lock()
        self._closed = False

    def read(self) -> bytes:
        """The next bytes of the process's stdout; b"" at the end."""
        with self._reading:
            try:
                return self._socket.recv(1 << 16)
            except OSError:
                return b""

    def write(self, data: bytes) -> None:
        """Bytes for its stdin.

        Raises:
            OSError: the channel is closed.
        """
        with self._writing:
            self._socket.sendall(data)

    def forget(self) -> None:
        """In a forked child: let go of its copy; the stream itself goes on."""
        self._socket.close()

    def close(self) -> None:
        """Close both directions, also for a forked process that holds this end, too; wakes whoever reads."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with self._reading, self._writing:
            self._socket.close()


def binds(mounts: Sequence[Mount], folder: Path) -> list[Bind]:
    """What level 1 puts in place, besides the mounts out of the private folder."""
    memory = [] if any(mount.memory for mount in mounts) else [Bind(str(folder / "memory"), FRESH)]
    own = [Bind(str(folder / "home"), HOME), *memory]
    return own + [Bind(str(mount.source), mount.target, mount.read_only) for mount in mounts]


def launcher(
    *,
    told: int,
    binds: Sequence[Bind] | None,
    cwd: str,
    limits: Mapping[int, tuple[int, int]] | None = None,
    argv: Sequence[str] = (),
) -> list[str]:
    """`namespaces.launch_argv` with the Python of this process."""
    source = _source_of("namespaces.py")
    return launch_argv(sys.executable, source, told=told, binds=binds, cwd=cwd, limits=limits or {}, argv=argv)


def _source_of(module: str) -> str:
    return resources.files("memkernel.sandbox").joinpath(module).read_text(encoding="utf-8")


def _path() -> str:
    """Where programs are looked for, this Python's own among them."""
    own, path = os.path.dirname(sys.executable), config.for_programs().get("PATH", os.defpath)
    return path if own in path.split(os.pathsep) else f"{own}{os.pathsep}{path}"


def _python_path() -> dict[str, str]:
    """How the kernel's Python finds what the caller's finds; the home that it would look in is another."""
    own = {os.path.realpath(path) for path in site.getsitepackages()}
    prefix = os.path.realpath(os.path.dirname(os.__file__))
    found = [path for path in sys.path if os.path.isdir(path) and os.path.isabs(path)]
    further = [
        path for path in found if os.path.realpath(path) not in own and not os.path.realpath(path).startswith(prefix)
    ]
    user = {"PYTHONUSERBASE": site.getuserbase()} if site.ENABLE_USER_SITE else {}
    return user | ({"PYTHONPATH": os.pathsep.join(further)} if further else {})


def _limits(limits: SandboxLimits) -> dict[int, tuple[int, int]]:
    """The process's own limits. Not the number of processes: it would count all of the account."""
    return {
        resource.RLIMIT_FSIZE: (limits.file_bytes, limits.file_bytes),
        resource.RLIMIT_NOFILE: (1024, 4096),
        resource.RLIMIT_CORE: (0, 0),
    }
