"""A kernel whose container is taken away, stopped or frozen by somebody else, and whose host is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memkernel.errors import SandboxClosedError
from memkernel.models import CellResult
from memkernel.sandbox.base import SandboxSpec
from memkernel.sandbox.docker import DockerSandbox
from memkernel.sandbox.engine import Engine

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def box(docker_engine: Engine, sandbox_image: str) -> Iterator[DockerSandbox]:
    spec = SandboxSpec(f"sesn_{uuid.uuid4().hex}", "memkernel-tests", image=sandbox_image)
    sandbox = DockerSandbox(spec, docker_engine)
    sandbox.start()
    yield sandbox
    sandbox.stop()


def docker(*words: str) -> str:
    return subprocess.run(["docker", *words], capture_output=True, text=True, check=True).stdout.strip()


def container(box: DockerSandbox) -> str:
    return docker("ps", "-q", "--filter", f"name={box.spec.session_id[-12:]}")


def meanwhile(do: Callable[[], object], after_s: float = 0.5) -> threading.Timer:
    timer = threading.Timer(after_s, do)
    timer.start()
    return timer


def test_a_removed_container_closes_the_sandbox(box: DockerSandbox) -> None:
    name = container(box)
    timer = meanwhile(lambda: docker("rm", "-f", name))
    began = time.monotonic()
    with pytest.raises(SandboxClosedError, match="removed"):
        box.run("import time; time.sleep(60)")
    assert time.monotonic() - began < 4
    timer.join()
    with pytest.raises(SandboxClosedError, match="removed"):
        box.run("1")
    assert box.status().state == "closed"


@pytest.mark.parametrize("how", [("kill",), ("stop", "-t", "0"), ("kill", "-s", "TERM")])
def test_a_stopped_container_is_a_death(box: DockerSandbox, how: tuple[str, ...]) -> None:
    name = container(box)
    timer = meanwhile(lambda: docker(*how, name))
    began = time.monotonic()
    result = box.run("import time; time.sleep(60)")
    assert time.monotonic() - began < 4
    assert result.status == "died"
    timer.join()
    assert box.run("1").result == "1"


def test_a_frozen_container_is_given_up_at_the_time_out(box: DockerSandbox) -> None:
    name = container(box)
    timer = meanwhile(lambda: docker("pause", name))
    result = box.run("import time; time.sleep(60)", timeout_s=1)
    assert result.status == "timeout"
    assert "state is lost" in result.notes[0]
    timer.join()
    assert box.run("1").result == "1"


def test_a_container_that_was_frozen_for_a_while_goes_on(box: DockerSandbox) -> None:
    name = container(box)
    meanwhile(lambda: docker("pause", name), 0.3)
    timer = meanwhile(lambda: docker("unpause", name), 1.5)
    assert box.run("import time; time.sleep(1); 'done'").result == "'done'"
    timer.join()


def test_nothing_runs_while_it_is_frozen(box: DockerSandbox) -> None:
    box.run(
        "import threading, time\nticks = 0\ndef tick():\n    global ticks\n    while True:\n        ticks += 1"
        "\n        time.sleep(0.01)\nthreading.Thread(target=tick, daemon=True).start()"
    )
    results: list[CellResult] = []
    with box.frozen():
        thread = threading.Thread(target=lambda: results.append(box.run("ticks")))
        thread.start()
        time.sleep(1)
        assert results == []
    thread.join()
    assert int(results[0].result or "0") < 60


HOST = """
import os, sys, time
from memkernel import config
from memkernel.sandbox.base import SandboxSpec
from memkernel.sandbox.docker import DockerSandbox
from memkernel.sandbox.engine import find_engine

engine = find_engine(config.load())
box = DockerSandbox(SandboxSpec(sys.argv[1], "memkernel-tests", image=sys.argv[2]), engine)
box.start()
child = os.fork()
if child:
    print(child, flush=True)
time.sleep(60)
"""


@pytest.mark.usefixtures("docker_engine")
def test_a_killed_host_leaves_no_container_running_also_where_it_had_forked(sandbox_image: str) -> None:
    session = f"sesn_{uuid.uuid4().hex}"
    with subprocess.Popen(
        [sys.executable, "-c", HOST, session, sandbox_image], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    ) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert docker("ps", "-q", "--filter", f"name={session[-12:]}")
        process.kill()
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and docker("ps", "-q", "--filter", f"name={session[-12:]}"):
            time.sleep(0.1)
        running = docker("ps", "-q", "--filter", f"name={session[-12:]}")
        os.kill(child, signal.SIGKILL)
    docker("rm", "-f", docker("ps", "-aq", "--filter", f"name={session[-12:]}"))
    assert running == ""
