"""Kernels with a sandbox: of each backend, with a home of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fix_kernel import Kernel, kernel_environment
from tests.fix_postgres import PostgresServer
from tests.store.proxy import LossyProxy


@pytest.fixture(params=["local", pytest.param("docker", marks=pytest.mark.docker)])
def backend(request: pytest.FixtureRequest) -> str:
    """What the sandbox is: `local` or `docker`."""
    return request.param


@pytest.fixture
def sandbox_variables(request: pytest.FixtureRequest, backend: str) -> dict[str, str]:
    """What a kernel's environment has to say so that its sandboxes start."""
    return {"MEMKERNEL_SANDBOX_IMAGE": request.getfixturevalue("sandbox_image")} if backend == "docker" else {}


@pytest.fixture
def open_home() -> Iterator[Path]:
    """A home that a sandbox's account can reach; pytest's directories are private."""
    with tempfile.TemporaryDirectory(prefix="mk-home-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[LossyProxy]:
    """Stands between the kernel and the database, and loses what it is told to."""
    proxy = LossyProxy(server.directory)
    yield proxy
    proxy.close()


@pytest.fixture
def sandboxed_dsn(dsn: str) -> str:
    """The database of the kernel with the sandbox; a test overrides it with one behind the proxy."""
    return dsn


@pytest.fixture
def sandboxed(sandboxed_dsn: str, backend: str, sandbox_variables: dict[str, str], open_home: Path) -> Iterator[Kernel]:
    """A kernel with the extension, `Team notes` in use, and a sandbox started; it is stopped at the end."""
    home = str(open_home / "memkernel")
    kernel = Kernel(
        kernel_environment(open_home, MEMKERNEL_DSN=sandboxed_dsn, MEMKERNEL_HOME=home, **sandbox_variables), open_home
    )
    try:
        assert kernel.run("%load_ext memkernel").status == "ok"
        assert kernel.run('%memory use "Team notes" --create -q').status == "ok"
        started = kernel.run(f"%sandbox start --backend {backend} -q -o box")
        assert started.status == "ok", started
        yield kernel
        kernel.run("%sandbox stop --all -q")
    finally:
        kernel.close()
