"""Which backend provides a sandbox, and how it is reached."""

from __future__ import annotations

from memkernel.models import Settings
from memkernel.runtime.request import SandboxRequest
from memkernel.sandbox.base import Mount, SandboxBackend, SandboxSpec
from memkernel.sandbox.engine import find_engine


class Provider:
    """Makes the backends of one sandbox; for Docker it holds the connections to the engine."""

    def __init__(self, request: SandboxRequest, settings: Settings) -> None:
        """Find the engine, where one is needed.

        Raises:
            EngineNotFoundError: Docker was asked for, and no engine answers.
            EngineError: one does, and cannot be used.
        """
        self._request = request
        self._engine = find_engine(settings) if request.backend == "docker" else None

    def make(self, *, session_id: str, installation_id: str, mounts: tuple[Mount, ...] = ()) -> SandboxBackend:
        """The backend that was asked for, with these stores' mounts; nothing is started."""
        request = self._request
        spec = SandboxSpec(
            session_id=session_id,
            installation_id=installation_id,
            mounts=(*mounts, *request.files),
            limits=request.limits,
            network=request.network,
            image=request.image,
            packages=request.packages,
            environment=request.environment,
        )
        if self._engine is None:
            from memkernel.sandbox.local import LocalSandbox

            return LocalSandbox(spec, level=request.level)
        from memkernel.sandbox.docker import DockerSandbox

        return DockerSandbox(spec, self._engine)

    def close(self) -> None:
        """Close the connections to the engine."""
        if self._engine is not None:
            self._engine.close()
