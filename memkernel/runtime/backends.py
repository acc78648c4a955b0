"""Which backend provides a sandbox, and how it is reached."""

from __future__ import annotations

from memkernel.models import Settings
from memkernel.runtime.request import SandboxRequest
from memkernel.sandbox.base import Mount, SandboxBackend, SandboxSpec
from memkernel.sandbox.engine import Engine, find


def make_backend(
    request: SandboxRequest,
    settings: Settings,
    *,
    session_id: str,
    installation_id: str,
    mounts: tuple[Mount, ...] = (),
) -> SandboxBackend:
    """The backend that was asked for; nothing is started.

    Raises:
        EngineNotFoundError, EngineError: Docker was asked for, and does not answer or cannot be used.
    """
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
    if request.backend == "local":
        from memkernel.sandbox.local import LocalSandbox

        return LocalSandbox(spec, level=request.level)
    from memkernel.sandbox.docker import DockerSandbox

    return DockerSandbox(spec, engine_of(settings))


def engine_of(settings: Settings) -> Engine:
    """The Docker engine that the environment names, or the usual one.

    Raises:
        EngineNotFoundError: none answers.
        EngineError: it does, and cannot be used.
    """
    return find(settings)
