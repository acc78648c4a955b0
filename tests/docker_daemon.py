"""Docker engines of the tests' own, and what tests/run asks of an engine.

python -m tests.docker_daemon ping              whether the engine that the environment names answers
python -m tests.docker_daemon serve DATA_ROOT   start one, print its DOCKER_HOST, end it when stdin ends
python -m tests.docker_daemon base [TAR]        make the base image of a tar; whether it is there
python -m tests.docker_daemon image             build the shipped image where it is not there
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from memkernel import config
from memkernel.errors import MemkernelError, SandboxError
from memkernel.models import Settings
from memkernel.sandbox.engine import Engine, find_engine
from memkernel.sandbox.image import BASE_IMAGE, Images

OFFLINE_BASE: Final = "memkernel-tests-base:trixie"
"""What tests/run makes without a registry: Debian with python3 and python3-venv."""

INSTALLATION: Final = "memkernel-tests"
"""Whose containers the tests' are, where a test needs none of its own."""

APART: Final = ("--iptables=false", "--ip-forward=false", "--ip-masq=false")
"""For an engine beside another: it leaves the machine's network alone. (`--bridge=none` would remove docker0.)"""

_WITH_SUBORDINATE: Final = 'for ids in /etc/subuid /etc/subgid; do mount --bind "$0" $ids || exit; done; exec "$@"'
ROOTLESS_UID: Final = 12345
"""Who a rootless engine of the tests is: an account that only it sees."""

_ROOTLESS: Final = """
for name in passwd group subuid subgid; do mount --bind "$0/etc/$name" /etc/$name || exit; done
uid=$1; shift
exec setpriv --reuid=$uid --regid=$uid --clear-groups --pdeathsig TERM \\
  env -i PATH="$PATH" HOME="$0" XDG_RUNTIME_DIR="$0" \\
  rootlesskit --net=host --copy-up=/etc --copy-up=/run --state-dir="$0/rootlesskit" \\
  sh -c 'rm -f /run/docker /run/containerd /run/xtables.lock; exec "$0" "$@"' "$@"
"""
_SYSTEM_CONTAINERD: Final = Path("/run/containerd/containerd.sock")
_START_S: Final = 60.0
_PR_SET_PDEATHSIG: Final = 1


class Daemon:
    """A dockerd with everything of its own: sockets, pid file, containers, images. Needs root.

    So nothing of another one stands in its way: no stale pid file, no half-dead service, no leftovers.
    """

    def __init__(
        self,
        data_root: Path | None = None,
        flags: tuple[str, ...] = (),
        *,
        subordinate: str = "",
        rootless: bool = False,
    ) -> None:
        """`subordinate` stands in place of /etc/subuid and /etc/subgid, for this engine alone."""
        # Short, for sockets lie in it; its name is containerd's namespace, too, in which no _ may follow a -.
        self.directory = Path(f"/run/mk-docker-{secrets.token_hex(4)}")
        self.directory.mkdir(0o700)
        self._scratch = tempfile.TemporaryDirectory(prefix="mk-docker-", dir="/var/tmp", ignore_cleanup_errors=True)
        self._data_root = data_root or Path(self._scratch.name) / "data"
        self._crashed = False
        self._flags = flags
        self._wrapper: list[str] = []
        if subordinate:
            (self.directory / "subordinate").write_text(subordinate)
            Path(self._scratch.name).chmod(0o711)  # who root is mapped to has to reach the images
            self._wrapper = ["unshare", "--mount", "sh", "-c", _WITH_SUBORDINATE, str(self.directory / "subordinate")]
        self._process: subprocess.Popen[bytes] | None = None

        if rootless:
            self._flags += ("--rootless",)
            self._wrapper = ["unshare", "--mount", "sh", "-c", _ROOTLESS, str(self.directory), str(ROOTLESS_UID)]
            self._make_account()

    def _make_account(self) -> None:
        """The files below /etc of a machine that has the account."""
        etc = self.directory / "etc"
        etc.mkdir()
        line = f"mkrootless:x:{ROOTLESS_UID}:{ROOTLESS_UID}"
        (etc / "passwd").write_text(Path("/etc/passwd").read_text() + f"{line}::{self.directory}:/bin/sh\n")
        (etc / "group").write_text(Path("/etc/group").read_text() + f"{line.rpartition(':')[0]}:\n")
        for name in ("subuid", "subgid"):
            (etc / name).write_text("mkrootless:300000:65536\n")
        for folder in (self.directory, Path(self._scratch.name)):
            folder.chmod(0o711)
            os.chown(folder, ROOTLESS_UID, ROOTLESS_UID)

    @property
    def host(self) -> str:
        """Its address, as in DOCKER_HOST."""
        return f"unix://{self.directory}/docker.sock"

    @property
    def log(self) -> str:
        """What it wrote."""
        return (self.directory / "log").read_text(errors="replace")

    def engine(self) -> Engine:
        """It, as memkernel finds it."""
        return find_engine(Settings(), self.host)

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._crashed = False
        _clear_the_way()
        own = self.directory
        command = ["dockerd", f"--host={self.host}", f"--pidfile={own}/pid", f"--exec-root={own}/exec"]
        command += [f"--data-root={self._data_root}", f"--containerd-namespace={own.name}"]
        with (own / "log").open("ab") as log:
            self._process = subprocess.Popen[bytes](
                [*self._wrapper, *command, *self._flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C at the test run ends the tests, and those end it
                preexec_fn=_end_with_parent,  # one call of the C library; a killed test run leaves no engine
            )
        deadline = time.monotonic() + _START_S
        while True:
            with contextlib.suppress(SandboxError):
                self.engine().close()
                return
            if self._process.poll() is not None or time.monotonic() > deadline:
                last = self.log.strip().splitlines()[-3:]
                self.remove()
                raise RuntimeError(f"dockerd did not start: {' | '.join(last)}")
            time.sleep(0.05)

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End the daemon as a crash does; its containers live on until it is started again or removed."""
        self._crashed = how == signal.SIGKILL
        if self._process:
            self._process.send_signal(how)
            self._process.wait(_START_S)
            self._process = None
            # Its containerd died with it. Where nobody reaps that, the next dockerd would wait for it.
            (self.directory / "exec" / "containerd" / "containerd.pid").unlink(missing_ok=True)

    def remove(self) -> None:
        """Stop it with all its containers and leave nothing behind but a data root that was given."""
        if self._crashed:  # what ran in it runs on, until it is there again and ends it
            with contextlib.suppress(RuntimeError):
                self.start()
        self.kill(signal.SIGTERM)
        for folder in (self.directory, Path(self._scratch.name)):
            for mount in reversed(_mounts_below(folder)):
                subprocess.run(["umount", "--lazy", mount], check=False)
        shutil.rmtree(self.directory, ignore_errors=True)
        self._scratch.cleanup()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _clear_the_way() -> None:
    """What a new machine or a crash leaves: no control groups, and a socket of a containerd that is gone."""
    if not os.path.ismount("/sys/fs/cgroup"):
        subprocess.run(["mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup"], check=False)
    if _SYSTEM_CONTAINERD.is_socket():  # dockerd would wait for it instead of starting its own
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(_SYSTEM_CONTAINERD))
            except ConnectionRefusedError:
                _SYSTEM_CONTAINERD.unlink()


def _mounts_below(folder: Path) -> list[str]:
    points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return [point for point in points if point.startswith(f"{folder}/")]


def copy_image(image: str, source: Engine, target: Engine) -> None:
    """Bring an image from one engine to another."""
    import docker

    def client(engine: Engine) -> Any:
        return docker.APIClient(engine.address.host, version=engine.version, timeout=600)

    with contextlib.closing(client(source)) as giving, contextlib.closing(client(target)) as taking:
        for _ in taking.load_image(giving.get_image(image)):
            pass


def import_base(engine: Engine, tar: Path) -> None:
    """Make the base image of a root file system."""
    import docker

    with contextlib.closing(docker.APIClient(engine.address.host, version=engine.version, timeout=600)) as client:
        repository, tag = OFFLINE_BASE.split(":")
        client.import_image_from_file(str(tar), repository=repository, tag=tag)  # pyright: ignore[reportUnknownMemberType]  # partly typed


def build_image(engine: Engine) -> str:
    """The id of the shipped image, built where it is not there: without a registry where the offline base is there."""
    base = OFFLINE_BASE if engine.image(OFFLINE_BASE) else BASE_IMAGE
    return Images(engine, INSTALLATION).ensure(base=base)


def _serve(data_root: str) -> None:
    daemon = Daemon(Path(data_root))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # tests/run ends it
    daemon.start()
    try:
        print(daemon.host, flush=True)
        sys.stdin.read()
    finally:
        daemon.remove()


def main(command: str, *arguments: str) -> int:
    """Do one of the commands above; its exit code."""
    if command == "serve":
        _serve(*arguments)
        return 0
    try:
        with contextlib.closing(find_engine(config.load())) as engine:
            if command == "base":
                if arguments:
                    import_base(engine, Path(arguments[0]))
                return 0 if engine.image(OFFLINE_BASE) else 1
            if command == "image":
                print(build_image(engine))
    except MemkernelError as error:
        print(*error.lines(), sep="\n", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
