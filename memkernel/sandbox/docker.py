"""The sandbox that isolates: a kernel in a hardened Docker container (SANDBOX.md 4)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar, Final, Literal

from memkernel.errors import InvalidInputError
from memkernel.sandbox import copying, walls
from memkernel.sandbox.base import MEBIBYTE, Place, SandboxSpec
from memkernel.sandbox.container import ContainerPlace
from memkernel.sandbox.engine import Engine
from memkernel.sandbox.image import Images
from memkernel.sandbox.kernel import KernelSandbox, Progress

_OWN_NETWORKS: Final = frozenset({"none", "bridge"})


class DockerSandbox(KernelSandbox):
    """A sandbox in a container of an engine, which stays the caller's.

    Args:
        spec: what it is.
        engine: `find_engine` finds it.
        base: what the shipped image is built on, where that is not there yet.
    """

    kind: ClassVar[Literal["docker", "local"]] = "docker"

    def __init__(self, spec: SandboxSpec, engine: Engine, *, base: str | None = None) -> None:
        super().__init__(spec)
        self._engine, self._base = engine, base
        self._container: ContainerPlace | None = None

    @property
    def isolation(self) -> str:
        """What the container may use, and what this engine does not enforce."""
        limits, info = self.spec.limits, self._engine.info
        cpus = min(limits.cpus, info.cpus)
        enforced = {
            "memory": f"{limits.memory_bytes // MEBIBYTE:,} MiB of memory",
            "CPU time": f"{cpus:g} CPU{'' if cpus == 1 else 's'}",
            "processes": f"{limits.pids:,} processes",
        }
        network = "no network" if self.spec.network == "none" else f"network {self.spec.network}"
        said = ", ".join([network, *(words for what, words in enforced.items() if what not in info.unlimited)])
        if info.unlimited:
            said += f"; this engine does not limit {', '.join(info.unlimited)}"
        return f"Docker container: {said}{'' if info.seccomp else '; this engine does not filter system calls'}"

    @property
    def owner(self) -> tuple[int, int]:
        """The uid and gid of the container's account as the host sees it."""
        return self._who.outside

    @property
    def _who(self) -> walls.Identity:
        return walls.identity(self._engine.info, (os.getuid(), os.getgid()), self._engine.owner)

    def check(self) -> None:
        """Refuse now what `start` would refuse, without starting anything."""
        spec = self.spec
        walls.check_limits(spec.limits)
        walls.check_network(spec.network)
        walls.check_packages(spec.packages)
        walls.check_environment(spec.environment)
        walls.check_mounts(spec.mounts, home=Path.home(), socket=self._engine.address.socket)
        _ = self._who
        if spec.network not in _OWN_NETWORKS:
            self._check_user_defined(spec.network)

    def _check_user_defined(self, network: str) -> None:
        """By whatever name or id it is called: the host's own network is none."""
        found = self._engine.network(network)
        if found is None:
            raise InvalidInputError(f"there is no Docker network {network}", hint="`docker network ls` lists them.")
        if found.get("Driver") in ("host", "null") or found.get("Name") == "host":
            walls.check_network("host")

    def _new_place(self, progress: Progress | None) -> Place:
        spec = self.spec
        images = Images(self._engine, spec.installation_id, progress)
        image = images.ensure(spec.image, spec.packages, *([self._base] if self._base else []))
        self._container = ContainerPlace(self._engine, spec, image, self._who)
        return self._container

    def put(self, source: Path, target: str) -> tuple[str, ...]:
        """Copy a file or folder of the host into the sandbox's home or /tmp; what was left out (links, sockets)."""
        return copying.put(self._running().execute, source, target)

    def get(self, source: str, target: Path) -> tuple[str, ...]:
        """Copy a file or folder of the sandbox to the host; what was left out (links, sockets)."""
        return copying.get(self._running().execute, source, target, self.spec.limits)

    def _running(self) -> ContainerPlace:
        self._check_open()
        assert self._container is not None
        return self._container
