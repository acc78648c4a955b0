"""One suite for every sandbox: Docker, and both levels of local."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memkernel.sandbox.docker import DockerSandbox
from memkernel.sandbox.engine import Engine
from memkernel.sandbox.local import LocalSandbox
from tests.sandbox.places import Make


@pytest.fixture(scope="module", params=[pytest.param("docker", marks=pytest.mark.docker), "local-1", "local-2"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def make(kind: str, request: pytest.FixtureRequest) -> Make:
    """Makes a sandbox of the kind; it is not started."""
    if kind == "docker":
        engine: Engine = request.getfixturevalue("docker_engine")
        image: str = request.getfixturevalue("sandbox_image")
        return lambda spec: DockerSandbox(replace(spec, image=image), engine)
    return lambda spec: LocalSandbox(spec, level=1 if kind == "local-1" else 2)
