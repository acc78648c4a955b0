"""The embedded server in real kernels: interrupted, restarted, shut down (fault 44)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.homes import Home, wait_until
from tests.fix_kernel import Kernel, kernel_environment

MAKE = """
import psycopg
from memkernel.cluster import EmbeddedCluster
cluster = EmbeddedCluster(home={home!r}, linger_s=0)
"""


class NotebookKernel(Kernel):
    """A kernel that tells values."""

    def value(self, code: str) -> str:
        """The text of an expression's value."""
        reply = self.run(code)
        assert reply.status == "ok", reply.traceback
        return reply.text


@pytest.fixture
def notebook_home(new_home: Callable[..., Home]) -> Home:
    """A home of whoever runs the tests: Jupyter's packages may be closed to others."""
    return new_home(("current", None))


@pytest.fixture
def new_kernel(notebook_home: Home, tmp_path: Path) -> Iterator[Callable[[], NotebookKernel]]:
    """Starts kernels that have a cluster on the home."""
    kernels: list[NotebookKernel] = []

    def start() -> NotebookKernel:
        kernels.append(NotebookKernel(kernel_environment(tmp_path), tmp_path))
        prepare(kernels[-1])
        return kernels[-1]

    def prepare(kernel: NotebookKernel) -> None:
        assert kernel.run(MAKE.format(home=str(notebook_home.path))).status == "ok"

    yield start
    for kernel in kernels:
        kernel.close()


def test_an_interrupted_first_start_goes_on_and_the_next_one_finds_it(
    notebook_home: Home, new_kernel: Callable[[], NotebookKernel]
) -> None:
    kernel = new_kernel()
    message = kernel.send("cluster.ensure()")
    wait_until(lambda: notebook_home.place.directory.exists() and notebook_home.leftovers)
    supervisor = notebook_home.supervisor
    kernel.interrupt()
    assert kernel.reply(message).ename == "KeyboardInterrupt"

    assert kernel.value("cluster.ensure()") == repr(notebook_home.dsn)
    assert notebook_home.supervisor == supervisor
    assert notebook_home.log.count("PostgreSQL stand-alone backend") == 1


def test_kernels_work_together_and_the_last_ones_end_stops_the_server(
    notebook_home: Home, new_kernel: Callable[[], NotebookKernel]
) -> None:
    first, second = new_kernel(), new_kernel()
    for kernel in (first, second):
        kernel.value("held = psycopg.connect(cluster.ensure(), autocommit=True)")
    postmaster = notebook_home.postmaster

    # NOTIFY reaches the other kernel.
    first.value("held.execute('LISTEN news'); None")
    second.value("held.execute(\"NOTIFY news, 'hello'\"); None")
    assert first.value("next(held.notifies(timeout=30)).payload") == "'hello'"

    # An interrupted query leaves the server usable; that it leaves the store's connections so, the store's tests show.
    message = first.send("print('asleep', flush=True); held.execute('SELECT pg_sleep(600)')")
    first.wait_until(message, lambda reply: "asleep" in reply.stdout)
    first.interrupt()
    assert first.reply(message).ename in ("KeyboardInterrupt", "QueryCanceled")
    first.value("held.close(); held = psycopg.connect(cluster.ensure(), autocommit=True)")
    assert first.value("held.execute('SELECT 1').fetchone()[0]") == "1"

    # A restart of one of two, and then of the only one, finds the same server.
    first.restart(now=True)
    assert notebook_home.postmaster == postmaster
    first.shut_down()
    assert second.value("held.execute('SELECT 1').fetchone()[0]") == "1"

    second.shut_down()
    wait_until(lambda: notebook_home.is_idle)
    assert not (notebook_home.place.data / "postmaster.pid").exists()


def test_the_restart_of_the_only_kernel_finds_its_server_again(
    notebook_home: Home, new_kernel: Callable[[], NotebookKernel]
) -> None:
    kernel = new_kernel()
    kernel.value("cluster = EmbeddedCluster(home=cluster.home, linger_s=60); cluster.ensure()")
    postmaster = notebook_home.postmaster
    kernel.restart(now=True)
    assert kernel.run(MAKE.format(home=str(notebook_home.path))).status == "ok"
    assert kernel.value("cluster.ensure()") == repr(notebook_home.dsn)
    assert notebook_home.postmaster == postmaster
