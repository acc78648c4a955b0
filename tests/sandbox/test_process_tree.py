"""The processes below one of this machine, as the local sandbox looks after them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from memkernel.sandbox import process_tree
from memkernel.sandbox.inside.processes import all_processes, below

TREE = "(sleep 100 & (sleep 100 & sleep 100) & sleep 100) & sleep 100 & cat"


def wait_until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


@pytest.fixture
def tree() -> Iterator[subprocess.Popen[bytes]]:
    """A shell with nine processes below it, some of them each other's children."""
    command = ["env", "MARK=mine", "bash", "-c", f"{TREE}; true"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True) as root:
        wait_until(lambda: len(process_tree.members(root.pid)) >= 7)
        yield root
        process_tree.kill(root.pid)
        root.kill()


def states(pids: set[int]) -> set[str]:
    """The states that the processes are in."""
    found: set[str] = set()
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            found.add(file.read().rpartition(")")[2].split()[0])
    return found


def test_its_members_are_all_below_it_by_each_way_to_look(tree: subprocess.Popen[bytes]) -> None:
    members = process_tree.members(tree.pid)
    assert members == below([tree.pid], all_processes())
    assert tree.pid not in members
    assert process_tree.members(2**22 - 1) == set()


def test_all_below_it_stops_and_goes_on(tree: subprocess.Popen[bytes]) -> None:
    stopped = process_tree.stop(tree.pid)
    assert stopped == process_tree.members(tree.pid)
    wait_until(lambda: states(stopped) == {"T"})
    process_tree.go_on(stopped)
    wait_until(lambda: "T" not in states(stopped))


def test_all_below_it_is_killed_and_it_goes_on(tree: subprocess.Popen[bytes]) -> None:
    process_tree.kill(tree.pid)
    assert process_tree.members(tree.pid) == set()


def test_what_has_the_variable_is_killed_and_nothing_else(tree: subprocess.Popen[bytes]) -> None:
    members = process_tree.members(tree.pid)
    with subprocess.Popen(["sleep", "100"], env={"MARK": "mine, too"}) as other:
        process_tree.kill_marked("MARK=mine")
        assert tree.wait(20) == -9
        assert not members & set(all_processes())
        assert other.poll() is None
        other.kill()


def test_shared_memory_is_not_counted_for_each_fork() -> None:
    """A parent of 150 MB and four forks of it are below a limit of 400 MB."""
    code = (
        "import os, sys\nx = bytearray(os.urandom(1000)) * 150_000\n"
        "for _ in range(4):\n    if os.fork() == 0:\n        break\nprint(flush=True)\nsys.stdin.read()"
    )
    helper = [sys.executable, "-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])", code]
    with subprocess.Popen(helper, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(5):
            process.stdout.readline()
        watch = process_tree.Watch(process, memory_bytes=400_000_000, processes=100)
        watch.look()
        assert not watch.memory_was_hit
        tight = process_tree.Watch(process, memory_bytes=50_000_000, processes=100)
        tight.look()
        assert tight.memory_was_hit
        process_tree.kill(process.pid)
    assert os.path.exists("/proc/self/smaps_rollup")
