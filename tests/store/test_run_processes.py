"""Which process a run belongs to: named, found again, and judged gone."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from memkernel.store import run_processes
from memkernel.store.run_processes import ALIVE_S, QUIET_S, RESTARTED_S, RunProcess

HERE = RunProcess("host", "boot", "pid:[1]", 100, "5000")
LONG = QUIET_S + 1


def test_this_process_is_named_and_is_not_gone() -> None:
    name = run_processes.this_process()
    known = run_processes.read(name)
    assert known is not None
    assert (known.pid, str(known)) == (os.getpid(), name)
    assert known.boot
    assert known.started
    assert not run_processes.is_gone(name, LONG)
    assert run_processes.this_process() == name


def test_a_later_process_of_the_same_pid_is_another_one() -> None:
    known = run_processes.read(run_processes.this_process())
    assert known is not None
    assert run_processes.is_gone(str(replace(known, started="1")), 0)


def test_a_forked_child_is_another_process_and_gone_when_it_has_ended() -> None:
    parent, (read, write) = run_processes.this_process(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, run_processes.this_process().encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        named = told.read()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert named != parent
    assert run_processes.is_gone(named, 0)  # a zombie
    os.waitpid(child, 0)
    assert run_processes.is_gone(named, 0)


def test_a_process_that_proc_hides_is_there_if_it_cannot_be_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's, where /proc is mounted with hidepid."""
    known = run_processes.read(run_processes.this_process())
    assert known is not None
    answers: list[type[OSError]] = [PermissionError, ProcessLookupError]

    def refuse(pid: int, signal: int) -> None:
        raise answers[0]

    monkeypatch.setattr(os, "kill", refuse)
    hidden = str(replace(known, pid=2**22 + 1))  # above the highest pid that Linux gives
    assert not run_processes.is_gone(hidden, LONG)
    answers.pop(0)
    assert run_processes.is_gone(hidden, 0)


@pytest.mark.parametrize("text", ["", "nobody", "[]", "{}", '["host", "boot", "ns", "pid", "1"]', "[1, 2]", "null"])
def test_what_names_no_process_is_nobody(text: str) -> None:
    assert run_processes.read(text) is None
    assert run_processes.is_gone(text, 0)


def test_a_run_may_miss_saying_once_that_it_goes_on() -> None:
    assert 2 * ALIVE_S < RESTARTED_S < QUIET_S


@pytest.mark.parametrize(
    ("process", "quiet_s", "is_living", "gone"),
    [
        (HERE, LONG, True, False),
        (HERE, 0, False, True),
        (replace(HERE, host="renamed"), LONG, True, False),
        (replace(HERE, boot="the last one"), RESTARTED_S, True, False),  # or another one of this name
        (replace(HERE, boot="the last one"), RESTARTED_S + 1, True, True),  # it was started anew: its pids mean nothing
        (replace(HERE, namespace="pid:[2]"), 0, False, False),  # a container of this machine
        (replace(HERE, namespace="pid:[2]"), LONG, True, True),
        (replace(HERE, host="other", boot="its own"), 0, False, False),
        (replace(HERE, host="other", boot="its own"), QUIET_S, False, False),
        (replace(HERE, host="other", boot="its own"), LONG, False, True),
    ],
)
def test_a_process_is_gone_by_its_pid_where_that_means_something_and_else_by_its_silence(
    process: RunProcess, quiet_s: float, is_living: bool, gone: bool
) -> None:
    assert run_processes.judge(process, HERE, quiet_s, is_living=is_living) is gone
