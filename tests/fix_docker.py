"""A real Docker engine for the tests, and the shipped image built on it; `bash tests/run` sets both up.

What asks for one of these fixtures is marked `docker`, so that a machine without an engine can leave it out by name.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memkernel import config
from memkernel.sandbox.engine import Engine, find_engine
from tests.docker_daemon import build_image


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs an engine."""
    for item in items:
        if "docker_engine" in getattr(item, "fixturenames", ()):
            item.add_marker("docker")


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[Engine]:
    """The engine that the environment names."""
    engine = find_engine(config.load())
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def docker_host(docker_engine: Engine) -> str:
    """The engine's address, as in DOCKER_HOST."""
    return docker_engine.address.host


@pytest.fixture(scope="session")
def sandbox_image(docker_engine: Engine) -> Iterator[str]:
    """The id of the shipped image, built where it is not there; `MEMKERNEL_SANDBOX_IMAGE` names it meanwhile."""
    with _alone("image"):
        image = build_image(docker_engine)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("MEMKERNEL_SANDBOX_IMAGE", image)
        yield image


@contextmanager
def _alone(what: str) -> Generator[None]:
    """While in here, no other worker of this account is."""
    path = Path(tempfile.gettempdir()) / f"memkernel-tests-{os.getuid()}-{what}.lock"
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
